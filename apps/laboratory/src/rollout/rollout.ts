import type { RoundKind, TailPolicy } from '@broomwagon/contracts';
import {
  addCounters,
  countBatch,
  countGroup,
  countTrained,
  countWasted,
  planRound,
  RoundModel,
  type LedgerCounters,
  type ModelAbort,
  type ModelRequest,
  type ModelRound,
} from '@broomwagon/policies';
import type { Router } from '../routing/router';
import type { FleetOptions } from '../simulation/simulated-fleet';
import { VirtualClock } from '../simulation/virtual-clock';
import type { Workload } from '../workload/workload';
import { ImmediateDispatcher, type Claim, type Dispatcher } from './dispatcher';
import { Placement, type KvTransfer } from './placement';
import type { Sample } from './sample';

export interface RolloutOptions {
  workload: Workload;
  fleet: FleetOptions;
  policy: TailPolicy;
  /** Groups of one step, and samples of one group. */
  groupsPerStep: number;
  samples: number;
  /** Groups of the whole data set. */
  groups: number;
  /** Ends after so many steps, even with groups left; default: when all are trained. */
  maxSteps?: number;
  router: Router;
  /** Default: {@link ImmediateDispatcher}. */
  dispatcher?: (placement: Placement, claim: Claim) => Dispatcher;
  /** Moves requests within a round: told of every round, and asked at its own pace. */
  mover?: (placement: Placement, samplesOf: () => Iterable<Sample>) => Mover;
  transfer?: KvTransfer;
  /** Between two rounds: cut, training call, new weights; part of every step. */
  overheadSeconds: number;
  /** Told after each step. */
  onStep?: (step: StepOutcome) => void;
}

/** Moves requests between servers while a round runs. */
export interface Mover {
  roundBegins(): void;
  /** A request has left its server. */
  changed(): void;
  roundEnds(): void;
}

/** One step. Seconds of virtual time, the overhead included in `seconds` alone. */
export interface StepOutcome {
  step: number;
  kind: RoundKind;
  seconds: number;
  /** From the end of nine tenths of its requests to the end of the last one. */
  tailSeconds: number;
  /** From the first server that has finished for good to the last. */
  gapSeconds: number;
  /** New groups were left to launch after it. */
  isWithinData: boolean;
  launchedGroups: number;
  takenGroups: number;
  meanTokens: number;
  trainedTokens: number;
}

export interface RolloutOutcome {
  steps: StepOutcome[];
  ledger: LedgerCounters;
  /** Of all samples that were ever launched, their first draws: what an unbiased step is made of. */
  population: { samples: number; tokens: number; atCap: number };
  /** All virtual time, the overheads included. */
  seconds: number;
  /** Virtual time without overheads. */
  rolloutSeconds: number;
  /** Engine seconds with something running / (servers x rolloutSeconds). */
  busyShare: number;
  preemptions: number;
  prefillTokens: number;
  moves: number;
  movedTokens: number;
}

/**
 * Rolls a data set out in virtual time. Rounds are those of production: `planRound` and `RoundModel` decide what is
 * launched, accepted, cut and taken again; the router decides where it runs. Only the engines are simulated.
 */
export class Rollout {
  private readonly clock = new VirtualClock();
  private readonly model = new RoundModel();
  private readonly placement: Placement;
  private readonly dispatcher: Dispatcher;
  private readonly mover?: Mover;
  private readonly samples = new Map<ModelRequest, Sample>();
  private readonly prompts = new Map<string, { prompt: number; lengths: number[] }>();
  private launchedGroups = 0;
  private openedAt = 0;
  private finishedAt: number[] = [];
  private serverFinishedAt: number[];
  private isOver = false;
  private readonly outcome: RolloutOutcome = {
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

  constructor(private readonly options: RolloutOptions) {
    const { fleet, router, transfer, dispatcher, mover } = options;
    this.placement = new Placement(this.clock, fleet, router, (sample, server) => this.left(sample, server), transfer);
    const claim: Claim = (max) => this.claim(max);
    this.dispatcher = dispatcher?.(this.placement, claim) ?? new ImmediateDispatcher(this.placement, claim);
    this.mover = mover?.(this.placement, () => this.held());
    this.serverFinishedAt = new Array<number>(fleet.servers).fill(0);
  }

  run(): RolloutOutcome {
    this.beginStep();
    this.clock.run(() => this.isOver);
    const { engines } = this.placement.fleet;
    const { outcome } = this;
    this.placement.fleet.sync();
    outcome.seconds = this.clock.now;
    const busySeconds = engines.reduce((sum, { totals }) => sum + totals.busySeconds, 0);
    outcome.busyShare = busySeconds / (engines.length * outcome.rolloutSeconds);
    outcome.preemptions = engines.reduce((sum, { totals }) => sum + totals.preemptions, 0);
    outcome.prefillTokens = engines.reduce((sum, { totals }) => sum + totals.prefillTokens, 0);
    outcome.moves = this.placement.moves;
    outcome.movedTokens = this.placement.movedTokens;
    return outcome;
  }

  private get nowMs(): number {
    return this.clock.now * 1_000;
  }

  private beginStep(): void {
    const { groupsPerStep, groups, policy, maxSteps = Infinity, samples } = this.options;
    const remainingGroups = groups - this.launchedGroups;
    const plan = planRound(this.model.snapshot(), { groupsPerStep, remainingGroups, policy });
    if (plan.kind === 'done' || this.outcome.steps.length >= maxSteps) {
      this.isOver = true;
      return;
    }
    this.openedAt = this.clock.now;
    this.finishedAt = [];
    this.serverFinishedAt.fill(this.clock.now);
    this.placement.forgetCaches();
    this.model.open({ ...plan, kind: plan.kind, policy, weightVersion: plan.step }, this.nowMs);
    const submissions = Array.from({ length: plan.newGroups }, () => this.newGroup(samples));
    this.model.submit(submissions, this.nowMs);
    this.mover?.roundBegins();
    if (this.model.round!.state === 'completed') return this.endStep();
    this.dispatcher.pump();
  }

  private newGroup(samples: number): { groupId: string; samples: number } {
    const prompt = this.launchedGroups++;
    const { workload } = this.options;
    const { population } = this.outcome;
    const lengths = Array.from({ length: samples }, (_, index) => workload.lengthOf(prompt, index, 0));
    for (const tokens of lengths) {
      population.samples += 1;
      population.tokens += tokens;
      if (tokens >= workload.capTokens) population.atCap += 1;
    }
    const groupId = `${prompt}`;
    this.prompts.set(groupId, { prompt, lengths });
    return { groupId, samples };
  }

  private claim(max: number): Sample[] {
    return this.model.claim(max, 'engines').map((request) => {
      const sample = this.sampleOf(request);
      // Begun before, and nothing of it is left: another draw.
      if (sample.carriedTokens > 0 && request.tokens === 0) {
        sample.draw += 1;
        sample.lengthTokens = this.options.workload.lengthOf(sample.prompt, request.index, sample.draw);
      }
      sample.carriedTokens = 0;
      sample.attempt = request.attempt;
      return sample;
    });
  }

  private sampleOf(request: ModelRequest): Sample {
    let sample = this.samples.get(request);
    if (!sample) {
      const { groupId } = request.group;
      const { prompt, lengths } = this.prompts.get(groupId)!;
      const { workload } = this.options;
      const promptTokens = workload.promptTokens(prompt);
      sample = {
        request,
        prompt,
        promptTokens,
        wish: { groupId, requestId: `${groupId}-${request.index}`, contextTokens: promptTokens },
        lengthTokens: lengths[request.index] ?? workload.lengthOf(prompt, request.index, 0),
        targetTokens: 0,
        draw: 0,
        attempt: 0,
        carriedTokens: 0,
        moves: 0,
        movedAtSeconds: 0,
        server: undefined,
      };
      this.samples.set(request, sample);
    }
    return sample;
  }

  private *held(): Iterable<Sample> {
    for (const request of this.model.held('engines')) yield this.samples.get(request)!;
  }

  /** A sample has left its server: it is at its end, or at that of its chunk. */
  private left(sample: Sample, server: number): void {
    this.serverFinishedAt[server] = this.clock.now;
    if (this.dispatcher.left?.(sample) === false) return;
    const { request, attempt } = sample;
    this.finishedAt.push(this.clock.now);
    const { aborts } = this.model.complete(request, attempt, this.segment(sample), this.nowMs);
    this.stopAll(aborts);
    if (this.model.round!.state === 'completed') this.endStep();
    else {
      this.dispatcher.pump();
      this.mover?.changed();
    }
  }

  private segment({ attempt, carriedTokens }: Sample) {
    return { attempt, weightVersion: this.model.round!.weightVersion, tokens: carriedTokens };
  }

  private stopAll(aborts: readonly ModelAbort[]): void {
    for (const { request } of aborts) {
      const sample = this.samples.get(request)!;
      const isSurplus = request.group.finished >= request.group.samples;
      this.placement.stop(sample);
      this.dispatcher.forget?.(sample);
      this.countStopped(sample, isSurplus);
      const segment = this.segment(sample);
      const isAtEnd = request.tokens + sample.carriedTokens >= sample.lengthTokens;
      // It ended in the very instant in which it was cut.
      if (isAtEnd && !isSurplus) this.model.complete(request, sample.attempt, segment, this.nowMs);
      else this.model.fail(request, sample.attempt, { segment }, this.nowMs);
    }
  }

  private countStopped(sample: Sample, isSurplus: boolean): void {
    const isLost = isSurplus || this.model.round!.rules.onCut === 'discard';
    if (!isLost) return;
    const tokens = sample.request.tokens + sample.carriedTokens;
    this.count(countWasted({ tokens, reason: isSurplus ? 'surplus' : 'cut', end: 'cut' }));
  }

  private endStep(): void {
    const round = this.model.round!;
    this.mover?.roundEnds();
    this.countUnaccepted(round);
    this.stopAll(this.model.cut());
    this.countRound(round);
    this.model.close();
    this.model.fold();
    for (const { groupId, requests } of round.accepted) {
      for (const request of requests) this.samples.delete(request);
      this.prompts.delete(groupId);
    }
    this.clock.after(this.options.overheadSeconds, () => this.beginStep());
  }

  /** Finished samples of groups that are not accepted, under a policy that keeps nothing. */
  private countUnaccepted(round: ModelRound): void {
    if (round.rules.onCut !== 'discard') return;
    const { capTokens } = this.options.workload;
    for (const { requests } of round.live) {
      for (const request of requests) {
        const { state, tokens } = request;
        if (state !== 'finished') continue;
        const end = tokens >= capTokens ? 'cap' : 'stopped';
        this.count(countWasted({ tokens, reason: 'unaccepted', end }));
      }
    }
  }

  private countRound(round: ModelRound): void {
    const { steps } = this.outcome;
    const { groups, overheadSeconds } = this.options;
    let [samples, tokens] = [0, 0];
    for (const group of round.accepted) {
      for (const request of group.requests) {
        if (request.state !== 'finished') continue;
        samples += 1;
        tokens += request.tokens;
        this.count(this.trained(request, round));
      }
      this.count(countGroup(group.cuts));
    }
    const seconds = this.clock.now - this.openedAt;
    const meanTokens = samples === 0 ? 0 : tokens / samples;
    this.count(countBatch(meanTokens));
    for (const reason of ['version-span', 'off-policy'] as const) {
      if (round.wasted[reason]) this.count({ [`waste.${reason}`]: round.wasted[reason] });
    }
    this.outcome.rolloutSeconds += seconds;
    const ended = this.finishedAt[Math.ceil(0.9 * this.finishedAt.length) - 1] ?? this.clock.now;
    const outcome: StepOutcome = {
      step: round.step,
      kind: round.kind,
      seconds: seconds + overheadSeconds,
      tailSeconds: this.clock.now - ended,
      gapSeconds: this.clock.now - Math.min(...this.serverFinishedAt),
      isWithinData: this.launchedGroups < groups,
      launchedGroups: round.newGroups + round.takenGroups,
      takenGroups: round.takenGroups,
      meanTokens,
      trainedTokens: tokens,
    };
    steps.push(outcome);
    this.options.onStep?.(outcome);
  }

  private trained(request: ModelRequest, round: ModelRound): LedgerCounters {
    return countTrained({
      segments: request.segments.map(({ weightVersion, tokens }) => ({ weightVersion, tokenCount: tokens })),
      weightVersion: round.weightVersion,
      isAtCap: request.tokens >= this.options.workload.capTokens,
    });
  }

  private count(counters: LedgerCounters): void {
    addCounters(this.outcome.ledger, counters);
  }
}
