import { HISTORY_STEPS, isRecorded, lengthBin, recordGroup, type StepRecord } from '@broomwagon/policies';
import type { ModelGroup, ModelRound } from './round-model.types';

type Lengths = StepRecord['lengths'];

/** Records of closed rounds for adaptive policies: lengths by the step of a group's first round, and times. */
export class LengthHistory {
  private readonly lengths = new Map<number, Lengths>();
  private records: { step: number; record: Omit<StepRecord, 'lengths'> }[] = [];

  /**
   * Counts the longest sample of a group once, in the step of the group's first round: as censored when the group is
   * cut, and corrected when it finishes. A group that was generated again counts with the longest sample of all tries.
   */
  count(group: ModelGroup, kind: 'finished' | 'censored', step: number): void {
    if (group.length?.kind === 'finished' || step - group.firstStep >= HISTORY_STEPS) return;
    const ofDomain = this.ofDomain(group);
    const before = group.length;
    if (before !== undefined) add(ofDomain[before.kind], before.bin, -1);
    const bin = Math.max(lengthBin(group.longest), before?.bin ?? 0);
    add(ofDomain[kind], bin, 1);
    group.length = { bin, kind };
  }

  /** Adds the record of a closed round. */
  record(round: ModelRound): void {
    const { acceptedTokens, longestTokens, bulkGroups, bulkMs, tailGroups, tailMs } = round;
    const durationMs = round.completedAtMs! - round.openedAtMs;
    const acceptedGroups = round.accepted.length;
    const record = {
      acceptedGroups,
      acceptedTokens,
      longestTokens,
      durationMs,
      bulkGroups,
      bulkMs,
      tailGroups,
      tailMs,
      newGroups: round.newGroups,
      ...(round.policy.name === 'auto' ? { recorded: recordedGroups(round) } : {}),
    };
    this.records.push({ step: round.step, record });
  }

  /** Forgets all steps but the last {@link HISTORY_STEPS} of `stepsTrained`. */
  forget(stepsTrained: number): void {
    const oldest = stepsTrained - HISTORY_STEPS + 1;
    this.records = this.records.filter(({ step }) => step >= oldest);
    for (const step of this.lengths.keys()) if (step < oldest) this.lengths.delete(step);
  }

  /** Records of the last steps, oldest first. */
  read(): StepRecord[] {
    return this.records.map(({ step, record }) => ({ ...record, lengths: this.lengths.get(step) ?? {} }));
  }

  private ofDomain({ firstStep, domain = '' }: ModelGroup): Lengths[string] {
    let ofStep = this.lengths.get(firstStep);
    if (ofStep === undefined) this.lengths.set(firstStep, (ofStep = {}));
    // A domain may have the name of a property of all objects.
    if (!Object.hasOwn(ofStep, domain)) ofStep[domain] = { finished: {}, censored: {} };
    return ofStep[domain]!;
  }
}

/** Recorded groups of a round as text, which `auto` replays. */
function recordedGroups({ accepted, ...round }: ModelRound): string {
  return accepted
    .map(({ requests, taken, finishedMs }, position) => {
      const lengths = requests.filter(({ state }) => state === 'finished').map(({ tokens }) => tokens);
      return isRecorded(position, lengths.length, round)
        ? recordGroup({ lengths, finishedMs: taken ? undefined : finishedMs })
        : '';
    })
    .join('');
}

function add(counts: Record<number, number>, bin: number, by: 1 | -1): void {
  const count = (counts[bin] ?? 0) + by;
  if (count === 0) delete counts[bin];
  else counts[bin] = count;
}
