import { measuredCosts, planRound, resolvePolicy, summariseLedger } from '@broomwagon/policies';
import {
  RoundModel,
  type ModelAbort,
  type ModelRequest,
  type ModelSegment,
  type ModelSubmission,
} from '@broomwagon/models';
import { VirtualClock } from '../simulation/virtual-clock';
import { ImmediateDispatcher, type Claim, type Dispatcher } from './dispatcher';
import { Placement } from './placement';
import { RolloutCounts } from './rollout-counts';
import type { Mover, RolloutOptions, RolloutOutcome } from './rollout.types';
import type { Sample } from './sample';

/**
 * Rolls out a data set in virtual time. Rounds work as in production: `planRound` and `RoundModel` decide which groups
 * are launched, accepted, cut and taken again; the router chooses the servers. Only the engines are simulated.
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
  private isOver = false;
  private readonly counts: RolloutCounts;

  constructor(private readonly options: RolloutOptions) {
    const { fleet, router, transfer, dispatcher, mover } = options;
    this.placement = new Placement(this.clock, fleet, router, (sample, server) => this.left(sample, server), transfer);
    const claim: Claim = (max) => this.claim(max);
    this.dispatcher = dispatcher?.(this.placement, claim) ?? new ImmediateDispatcher(this.placement, claim);
    this.mover = mover?.(this.placement, () => this.held());
    this.counts = new RolloutCounts(options);
  }

  run(): RolloutOutcome {
    this.beginStep();
    this.clock.run(() => this.isOver);
    const { engines } = this.placement.fleet;
    const { outcome } = this.counts;
    this.placement.fleet.sync();
    outcome.seconds = this.clock.now;
    const busySeconds = engines.reduce((sum, { totals }) => sum + totals.busySeconds, 0);
    outcome.busyShare = busySeconds / (engines.length * outcome.rolloutSeconds);
    outcome.prefillTokens = engines.reduce((sum, { totals }) => sum + totals.prefillTokens, 0);
    outcome.moves = this.placement.moves;
    outcome.movedTokens = this.placement.movedTokens;
    return outcome;
  }

  private get nowMs(): number {
    return this.clock.now * 1_000;
  }

  private beginStep(): void {
    const { groupsPerStep, groups, policy, samples } = this.options;
    const remainingGroups = groups - this.launchedGroups;
    // Only `auto` reads the ledger of the job, as in production.
    const measured = policy.name === 'auto' ? measuredCosts(summariseLedger(this.counts.outcome.ledger)) : undefined;
    const progress = { ...this.model.progress(), measured };
    const resolved = resolvePolicy(policy, progress);
    const plan = planRound(progress, { groupsPerStep, remainingGroups, policy }, resolved);
    if (plan.kind === 'done') {
      this.isOver = true;
      return;
    }
    this.counts.roundOpened(this.clock.now);
    this.placement.forgetCaches();
    this.model.open({ ...plan, kind: plan.kind, policy, weightVersion: plan.step, resolved }, this.nowMs);
    const submissions = Array.from({ length: plan.newGroups }, () => this.newGroup(samples));
    this.model.submit(submissions, this.nowMs);
    this.mover?.roundBegins();
    if (this.model.round!.state === 'completed') return this.endStep();
    this.dispatcher.pump();
  }

  private newGroup(samples: number): ModelSubmission {
    const prompt = this.launchedGroups++;
    const { workload } = this.options;
    const lengths = Array.from({ length: samples }, (_, index) => workload.getLength(prompt, index, 0));
    this.counts.launched(lengths);
    const groupId = `${prompt}`;
    this.prompts.set(groupId, { prompt, lengths });
    return { groupId, samples, maxTokens: this.options.maxTokens };
  }

  private claim(max: number): Sample[] {
    return this.model.claim(max, 'engines').map((request) => {
      const sample = this.getSample(request);
      // A request that was started before and has no tokens left is drawn again.
      if (sample.carriedTokens > 0 && request.tokens === 0) {
        sample.draw += 1;
        sample.lengthTokens = this.options.workload.getLength(sample.prompt, request.index, sample.draw);
      }
      sample.carriedTokens = 0;
      sample.attempt = request.attempt;
      return sample;
    });
  }

  private getSample(request: ModelRequest): Sample {
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
        routeRequest: { groupId, requestId: `${groupId}-${request.index}`, contextTokens: promptTokens },
        lengthTokens: lengths[request.index] ?? workload.getLength(prompt, request.index, 0),
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

  /** Handles a sample that has left its server, at its end or at the end of its chunk. */
  private left(sample: Sample, server: number): void {
    this.counts.left(server, this.clock.now);
    if (this.dispatcher.left?.(sample) === false) return;
    const { request, attempt } = sample;
    this.counts.finished(this.clock.now);
    const { aborts } = this.model.complete(request, attempt, this.segment(sample), this.nowMs);
    this.stopAll(aborts);
    if (this.model.round!.state === 'completed') this.endStep();
    else this.dispatcher.pump();
  }

  /** Segment of the sample's attempt; undefined without tokens, so that the attempt counts as never started. */
  private segment({ attempt, carriedTokens }: Sample): ModelSegment | undefined {
    if (carriedTokens === 0) return undefined;
    return { attempt, weightVersion: this.model.round!.weightVersion, tokens: carriedTokens };
  }

  private stopAll(aborts: readonly ModelAbort[]): void {
    for (const { request } of aborts) {
      const sample = this.samples.get(request)!;
      const isSurplus = request.group.finished >= request.group.samples;
      this.placement.stop(sample);
      this.dispatcher.forget?.(sample);
      this.counts.stopped(sample, this.model.round!, isSurplus);
      const segment = this.segment(sample);
      const isAtEnd = request.tokens + sample.carriedTokens >= sample.lengthTokens;
      // The sample ended in the same instant in which it was cut.
      if (isAtEnd && !isSurplus) this.model.complete(request, sample.attempt, segment, this.nowMs);
      else this.model.fail(request, sample.attempt, { segment }, this.nowMs);
    }
  }

  private endStep(): void {
    const round = this.model.round!;
    this.mover?.roundEnds();
    this.counts.roundCompleted(round);
    this.stopAll(this.model.cut());
    const preemptions = this.placement.fleet.engines.reduce((sum, { totals }) => sum + totals.preemptions, 0);
    this.counts.roundEnded(round, this.clock.now, this.launchedGroups < this.options.groups, preemptions);
    this.model.close();
    this.model.fold();
    for (const { groupId, requests } of round.accepted) {
      for (const request of requests) this.samples.delete(request);
      this.prompts.delete(groupId);
    }
    this.clock.after(this.options.overheadSeconds, () => this.beginStep());
  }
}
