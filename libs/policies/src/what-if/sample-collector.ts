import { idOfPart, type PoolEvent } from '@broomwagon/contracts';

/** Samples of a job, from the events of the job. */
export interface CollectedSamples {
  /** Lengths of the samples of each whole group, tokens, by group id; groups in the order of their submission. */
  groups: Map<string, number[]>;
  /** Samples of a whole group. */
  samples: number;
  /** Number of groups with unknown samples. */
  partialGroups: number;
  /** Tokens of the longest attempt that finished a sample, by round. */
  longestTokens: Map<string, number>;
}

/** Collects the samples of one job from its events, in any order of groups. */
export class SampleCollector {
  private readonly openedAtMs = new Map<string, number>();
  /** Earliest known time at which a sample of the group became pending, by group, milliseconds since 1970. */
  private readonly queuedAtMs = new Map<string, number>();
  /** Lengths by group, and by index of the sample. A sample that was generated again has its last length. */
  private readonly lengths = new Map<string, Map<number, number>>();
  private readonly longestTokens = new Map<string, number>();

  /** @param maxGroups maximum number of groups; later groups are left out */
  constructor(private readonly maxGroups = Infinity) {}

  add(event: PoolEvent): void {
    if (event.type === 'round.opened') this.openedAtMs.set(event.roundId, event.atMs);
    if (event.type === 'longtail.requeued') this.see(event.groupId, event);
    if (event.type !== 'request.finished' && event.type !== 'attempt.ended') return;
    const { roundId, requestId } = event;
    const [, groupId, index] = requestId.split('/').map(idOfPart) as [string, string, string];
    const lengths = this.lengths.get(groupId) ?? new Map<number, number>();
    if (this.lengths.size >= this.maxGroups && !this.lengths.has(groupId)) return;
    this.lengths.set(groupId, lengths);
    this.see(groupId, event);
    if (event.type !== 'request.finished') return;
    lengths.set(Number(index), event.tokens);
    this.longestTokens.set(roundId, Math.max(this.longestTokens.get(roundId) ?? 0, event.attemptTokens));
  }

  /**
   * Notes when the group became pending. Events of earlier releases lack this time, so the opening of the round is
   * used.
   */
  private see(groupId: string, event: { roundId: string; atMs: number; queuedAtMs?: number }): void {
    const queuedAtMs = event.queuedAtMs ?? this.openedAtMs.get(event.roundId) ?? event.atMs;
    this.queuedAtMs.set(groupId, Math.min(this.queuedAtMs.get(groupId) ?? Infinity, queuedAtMs));
  }

  collected(): CollectedSamples {
    const entries = [...this.lengths];
    const samples = entries.reduce((most, [, lengths]) => Math.max(most, lengths.size), 0);
    const getStart = (groupId: string): number => this.queuedAtMs.get(groupId)!;
    const whole = entries
      .filter(([, lengths]) => lengths.size === samples && samples > 0)
      .sort(([one], [other]) => getStart(one) - getStart(other) || byName(one, other));
    return {
      groups: new Map(whole.map(([groupId, lengths]) => [groupId, inOrder(lengths)])),
      samples,
      partialGroups: entries.length - whole.length,
      longestTokens: this.longestTokens,
    };
  }
}

function inOrder(lengths: ReadonlyMap<number, number>): number[] {
  return [...lengths].sort(([one], [other]) => one - other).map(([, tokens]) => tokens);
}

/** Compares names, with numbers by value: p2 before p10. */
const { compare: byName } = new Intl.Collator('en', { numeric: true });
