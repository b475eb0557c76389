import {
  countBatch,
  countGroup,
  countTrained,
  countWasted,
  type ModelRequest,
  type ModelRound,
} from '@broomwagon/models';
import { addCounters, type LedgerCounters } from '@broomwagon/policies';
import type { RolloutOptions, RolloutOutcome } from './rollout.types';
import type { Sample } from './sample';

/** Measures of a rollout: the ledger of all samples, and the times of all steps in virtual seconds. */
export class RolloutCounts {
  private openedAt = 0;
  private finishedAt: number[] = [];
  private readonly serverFinishedAt: number[];
  readonly outcome: RolloutOutcome = {
    steps: [],
    ledger: {},
    population: { samples: 0, tokens: 0, atCap: 0 },
    seconds: 0,
    rolloutSeconds: 0,
    busyShare: 0,
    preemptions: 0,
    prefillTokens: 0,
    moves: 0,
    movedTokens: 0,
  };

  constructor(private readonly options: Pick<RolloutOptions, 'workload' | 'fleet' | 'overheadSeconds'>) {
    this.serverFinishedAt = new Array<number>(options.fleet.servers).fill(0);
  }

  roundOpened(now: number): void {
    this.openedAt = now;
    this.finishedAt = [];
    this.serverFinishedAt.fill(now);
  }

  /** Counts a new group by the lengths of its samples. */
  launched(lengths: readonly number[]): void {
    const { population } = this.outcome;
    for (const tokens of lengths) {
      population.samples += 1;
      population.tokens += tokens;
      if (tokens >= this.options.workload.capTokens) population.atCap += 1;
    }
  }

  /** Records that a sample has left its server. */
  left(server: number, now: number): void {
    this.serverFinishedAt[server] = now;
  }

  finished(now: number): void {
    this.finishedAt.push(now);
  }

  /** Counts a stopped sample; its tokens are lost if it is surplus or the policy discards cut samples. */
  stopped({ request, carriedTokens }: Sample, round: ModelRound, isSurplus: boolean): void {
    if (!isSurplus && round.rules.onCut === 'keep') return;
    const tokens = request.tokens + carriedTokens;
    this.count(countWasted({ tokens, reason: isSurplus ? 'surplus' : 'cut', end: 'cut' }));
  }

  /** Counts the finished samples of unaccepted groups as lost at the end of a round, if the policy discards them. */
  roundCompleted(round: ModelRound): void {
    if (round.rules.onCut === 'keep') return;
    for (const { requests } of round.live) {
      for (const { state, tokens } of requests) {
        if (state !== 'finished') continue;
        const end = this.isAtCap(tokens) ? 'cap' : 'stopped';
        this.count(countWasted({ tokens, reason: 'unaccepted', end }));
      }
    }
  }

  /** Counts the trained groups of an ended round. `preemptions`: number in the whole rollout so far. */
  roundEnded(round: ModelRound, now: number, isWithinData: boolean, preemptions: number): void {
    let [samples, trainedTokens] = [0, 0];
    for (const group of round.accepted) {
      for (const request of group.requests) {
        if (request.state !== 'finished') continue;
        samples += 1;
        trainedTokens += request.tokens;
        this.count(this.trained(request, round));
      }
      this.count(countGroup(group.cuts));
    }
    const meanTokens = samples === 0 ? 0 : trainedTokens / samples;
    this.count(countBatch(meanTokens));
    for (const reason of ['version-span', 'off-policy'] as const) {
      if (round.wasted[reason]) this.count({ [`waste.${reason}`]: round.wasted[reason] });
    }
    const seconds = now - this.openedAt;
    this.outcome.rolloutSeconds += seconds;
    const mostFinishedAt = this.finishedAt[Math.ceil(0.9 * this.finishedAt.length) - 1] ?? now;
    this.outcome.steps.push({
      step: round.step,
      kind: round.kind,
      seconds: seconds + this.options.overheadSeconds,
      tailSeconds: now - mostFinishedAt,
      gapSeconds: now - Math.min(...this.serverFinishedAt),
      isWithinData,
      launchedGroups: round.newGroups + round.takenGroups,
      takenGroups: round.takenGroups,
      meanTokens,
      trainedTokens,
      preemptions: preemptions - this.outcome.preemptions,
      ...(round.choice?.auto && { choice: round.choice.auto }),
    });
    this.outcome.preemptions = preemptions;
  }

  private trained(request: ModelRequest, round: ModelRound): LedgerCounters {
    return countTrained({
      segments: request.segments.map(({ weightVersion, tokens }) => ({ weightVersion, tokenCount: tokens })),
      weightVersion: round.weightVersion,
      isAtCap: this.isAtCap(request.tokens),
    });
  }

  private isAtCap(tokens: number): boolean {
    return tokens >= this.options.workload.capTokens;
  }

  private count(counters: LedgerCounters): void {
    addCounters(this.outcome.ledger, counters);
  }
}
