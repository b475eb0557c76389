import type { AbortScope, TailPolicy } from '@broomwagon/contracts';
import { expect } from 'vitest';
import { checkOpen } from './check-open.fixture';
import { type Decide, interleave } from './interleave.fixture';
import { planRound } from '@broomwagon/policies';
import {
  type Ended,
  type GivenAttempt,
  isForgotten,
  isOver,
  nameOf,
  namesOf,
  type RoundFollower,
  WORKERS,
} from './round-follower.fixture';
import { RoundModel } from './round-model';
import type { ModelAbort, ModelGroup, ModelRound, ModelSegment, ModelSubmission } from './round-model.types';

export interface RoundSetting {
  groups: number;
  samples: number;
  groupsPerStep: number;
  policy: TailPolicy;
  /** Of every group; default: `samples`. */
  minSamples?: number;
  /** Of every round. */
  abortScope?: AbortScope;
}

const ACTS = {
  train: 20,
  claim: 28,
  save: 14,
  complete: 28,
  fail: 14,
  cut: 14,
  expireWorker: 2,
  fold: 4,
  reward: 10,
  dropGroup: 1,
  stopSample: 2,
  move: 4,
  expireMoves: 1,
  changeWeights: 1,
  expireRound: 2,
  reconcile: 1,
};
export type RoundAct = keyof typeof ACTS;

const VERSIONS_PER_STEP = 2;
/** Of the groups, in turn. */
const MAX_TOKENS = [100, 6_400, 700, 130];
/** Reconciles of one run: Redis forgets what it has trained when it has had 16 rounds since. */
const MOST_RECONCILES = 3;

/** The last one has no quota. */
const domainOf = (position: number): string => ['d0', 'constructor', 'live:d0'][position % 3]!;

/**
 * Workers that do anything in any order, and a trainer that checks every batch, on the model of rounds; with a follower
 * also elsewhere, and both must agree on every answer.
 */
export class RoundWorld {
  readonly model = new RoundModel();
  readonly trained = new Set<string>();
  steps = 0;
  private readonly groups = new Map<string, ModelGroup>();
  private given: GivenAttempt[] = [];
  private submitted = 0;
  private modelMs = 0;
  private reconciles = 0;
  /** Groups that the step of the last plan trains. */
  private planned = 0;
  /** Rounds that ended early: what they cut may be cut more often, and become older, than their policy allows. */
  private brokenOff = 0;

  constructor(
    readonly setting: RoundSetting,
    private readonly decide: Decide,
    private readonly follower?: RoundFollower,
  ) {}

  /** Runs the data set to its end, without some acts. */
  run(without: readonly RoundAct[] = []): Promise<void> {
    const names = (Object.keys(ACTS) as RoundAct[]).filter((name) => !without.includes(name));
    const acts = names.map((name) => ({ weight: ACTS[name], act: () => this[name]() }));
    return interleave(this.decide, acts, () => this.check());
  }

  /** The next step of the trainer. False when all is trained. */
  private async train(): Promise<boolean> {
    const { round } = this.model;
    if (round === undefined || isOver(round)) return this.open();
    if (round.state === 'completed') await this.close(round);
    else await this.submit(round.newGroups - round.submittedGroups);
    return true;
  }

  private async open(): Promise<boolean> {
    const { groups, abortScope, groupsPerStep, policy } = this.setting;
    const progress = this.model.progress();
    await this.follower?.compareProgress(progress);
    const remaining = Array.from({ length: groups - this.submitted }, (_, offset) => this.submitted + offset);
    const byDomain = new Map<string, number>();
    for (const domain of remaining.map(domainOf)) byDomain.set(domain, (byDomain.get(domain) ?? 0) + 1);
    const remainingByDomain = Object.fromEntries(byDomain);
    const remainingGroups = remaining.length;
    const plan = planRound(progress, { groupsPerStep, remainingGroups, remainingByDomain, policy });
    if (plan.kind === 'done') return false;
    const { step, kind, neededGroups, newGroups, takeGroups } = plan;
    expect(neededGroups).toBe(
      Math.min(groupsPerStep, remainingGroups + progress.longtailGroups + progress.settlingGroups),
    );
    expect(newGroups + takeGroups).toBeGreaterThanOrEqual(neededGroups);
    expect(newGroups).toBeLessThanOrEqual(remainingGroups);
    if (remainingGroups >= neededGroups && policy.maxLongtailShare !== undefined) {
      expect(takeGroups).toBeLessThanOrEqual(policy.maxLongtailShare * neededGroups);
    }
    const opening = { ...plan, kind, policy, weightVersion: VERSIONS_PER_STEP * step, abortScope };
    const said = await this.follower?.open(opening, progress);
    const state = this.model.open(opening, await this.nowMs());
    this.same(said, state);
    if (state === 'ROUND_SETTLING') return true;
    expect(['open', 'completed']).toContain(state);
    const round = this.model.round!;
    if (policy.maxLongtailShare === undefined && this.model.longtail.pinnedGroups(step) > 0) {
      expect(round.reserved + round.accepted.length, 'a pinned group waits').toBe(neededGroups);
    }
    await this.check();
    this.planned = neededGroups;
    await this.submit(newGroups);
    return true;
  }

  /** New groups of the plan, or in the place of others. */
  private async submit(count: number): Promise<void> {
    if (count <= 0) return;
    const { samples, minSamples } = this.setting;
    const fresh = Array.from({ length: count }, (_, offset) => this.submitted + offset).map((position) => {
      const maxTokens = MAX_TOKENS[position % MAX_TOKENS.length];
      return { groupId: `g${position}`, samples, minSamples, maxTokens, domain: domainOf(position) };
    });
    this.submitted += count;
    expect(this.submitted, 'more groups were asked for than there are').toBeLessThanOrEqual(this.setting.groups);
    await this.follower?.submit(this.model.round!, fresh);
    for (const group of this.model.submit(fresh, await this.nowMs())) this.groups.set(group.groupId, group);
  }

  /** The trainer reports the rewards of a group, or reports them again. */
  private async reward(): Promise<void> {
    const { round } = this.model;
    const group = round && !isOver(round) ? this.pick(round.accepted) : undefined;
    if (group === undefined) return;
    const isEqual = this.decide(2) === 0;
    const remaining = this.setting.groups - this.submitted;
    const said = await this.follower?.reward(group, isEqual, remaining);
    this.same(said, this.model.reward(group, isEqual, remaining, await this.nowMs()));
  }

  /** Every accepted group is new, whole and within its bounds. */
  private async close(round: ModelRound): Promise<void> {
    const { policy, samples, minSamples = samples } = this.setting;
    const replaced = [...round.outcomes.values()].filter((outcome) => outcome === 'replaced').length;
    // What takes the place of others may fail, as any group.
    if (round.completedReason === 'accepted') expect(round.accepted.length - replaced).toBe(this.planned);
    expect(replaced).toBeLessThanOrEqual(policy.maxReplacedGroups ?? Infinity);
    for (const { groupId, requests, cuts } of round.accepted) {
      expect(this.trained.has(groupId), `${groupId} trained twice`).toBe(false);
      this.trained.add(groupId);
      const finished = requests.filter(({ state }) => state === 'finished');
      expect(finished.length).toBeGreaterThanOrEqual(minSamples);
      expect(finished.length).toBeLessThanOrEqual(samples);
      for (const { segments, tokens } of finished) {
        expect(segments.reduce((sum, segment) => sum + segment.tokens, 0)).toBe(tokens);
      }
      if (this.brokenOff > 0) continue;
      const versions = finished.flatMap(({ segments }) => segments.map(({ weightVersion }) => weightVersion));
      const oldest = Math.min(round.weightVersion, ...versions);
      expect(round.weightVersion - oldest).toBeLessThanOrEqual(policy.maxVersionSpan ?? Infinity);
      expect(cuts).toBeLessThanOrEqual(policy.maxCuts ?? Infinity);
    }
    await this.follower?.close(round);
    this.model.close();
    this.steps += 1;
  }

  private async claim(): Promise<void> {
    const workerId = this.pick(WORKERS)!;
    const max = 1 + this.decide(6);
    const said = await this.follower?.claim(max, workerId);
    const claims = this.model.claim(max, workerId);
    this.same(
      said,
      claims.map((request) => nameOf(request, request.attempt)),
    );
    this.given.push(...claims.map((request) => ({ request, number: request.attempt, workerId })));
  }

  private async save(): Promise<void> {
    const attempt = this.anAttempt();
    if (attempt === undefined) return;
    const made = this.segment(attempt);
    const said = await this.follower?.save(attempt, made);
    this.same(said, this.model.save(attempt.request, attempt.number, made));
  }

  private async complete(): Promise<void> {
    const attempt = this.anAttempt();
    if (attempt === undefined) return;
    const made = this.segment(attempt);
    const said = await this.follower?.complete(attempt, made);
    this.sameEnd(said, this.model.complete(attempt.request, attempt.number, made, await this.nowMs()));
  }

  private async fail(attempt = this.anAttempt(), isStopped = false): Promise<void> {
    if (attempt === undefined) return;
    const made = this.segment(attempt);
    const kind = isStopped
      ? {}
      : { countsAsFailure: this.decide(3) === 0, retryable: this.decide(8) > 0, timedOut: this.decide(6) === 0 };
    const said = await this.follower?.fail(attempt, made, kind);
    const { request, number } = attempt;
    this.sameEnd(said, this.model.fail(request, number, { segment: made, ...kind }, await this.nowMs()));
  }

  /** What completed rounds have left is cut, and some holders confirm. */
  private async cut(): Promise<void> {
    const said = await this.follower?.cut();
    const aborts = this.model.cut();
    this.same(said, namesOf(aborts));
    await this.confirmSome(aborts);
  }

  private async expireWorker(): Promise<void> {
    const workerId = this.pick(WORKERS)!;
    // The order in which several attempts come back is the scripts' own.
    if (this.follower && this.model.held(workerId).size > 1) return;
    await this.follower?.expireWorker(workerId);
    this.model.expiredHolder(workerId, await this.nowMs());
    this.given = this.given.filter((attempt) => attempt.workerId !== workerId);
  }

  private async fold(): Promise<void> {
    await this.follower?.fold();
    this.model.fold();
  }

  private async dropGroup(): Promise<void> {
    const group = this.pick([...this.groups.values()]);
    if (group === undefined) return;
    const said = await this.follower?.dropGroup(group);
    this.same(said, namesOf(this.model.dropGroup(group, await this.nowMs())));
  }

  private async stopSample(): Promise<void> {
    const request = this.pick(this.pick([...this.groups.values()])?.requests ?? []);
    if (request === undefined || isForgotten(request.group)) return;
    const said = await this.follower?.stopSample(request);
    this.same(said, namesOf(this.model.stopSample(request, await this.nowMs())));
  }

  /** A request moves to another server; its holder may confirm. */
  private async move(): Promise<void> {
    const request = this.pick(this.pick([...this.groups.values()])?.requests ?? []);
    if (request === undefined || isForgotten(request.group)) return;
    const said = await this.follower?.move(request);
    const { state, aborts } = this.model.move(request);
    this.sameEnd(said, { state, aborts });
    await this.confirmSome(aborts);
  }

  private async expireMoves(): Promise<void> {
    const said = await this.follower?.expireMoves();
    this.same(said, this.model.expireMoves());
  }

  /** The weights of the pool change, and all that runs is stopped. */
  private async changeWeights(): Promise<void> {
    const said = await this.follower?.changeWeights(this.given.filter(isHeld));
    const aborts = this.model.stopHeld();
    this.same(said, namesOf(aborts));
    await this.confirmSome(aborts);
  }

  private async confirmSome(aborts: readonly ModelAbort[]): Promise<void> {
    for (const { request, attempt } of aborts) {
      const given = this.given.find((one) => one.request === request && one.number === attempt);
      if (given !== undefined && this.decide(2) === 0) await this.fail(given, true);
    }
  }

  /** The deadline of the round comes; the model has no clock. */
  private async expireRound(): Promise<void> {
    const isDue = (await this.follower?.expireRound()) ?? this.setting.policy.deadlineMs !== undefined;
    if (!isDue) return;
    this.brokenOff += 1;
    this.model.expire(await this.nowMs());
  }

  /** The trainer takes the job over and reports the next step as trained, with any groups. */
  private async reconcile(): Promise<void> {
    if (this.model.round === undefined || this.reconciles === MOST_RECONCILES) return;
    this.reconciles += 1;
    this.brokenOff += 1;
    const step = this.steps + 1 + this.decide(2);
    // The requests of a failed group are forgotten with its round.
    const known = [...this.groups.values()].filter((group) => !(group.state === 'failed' && isOver(group.round)));
    const named: (ModelGroup | ModelSubmission)[] = known.filter(() => this.decide(3) === 0);
    if (this.submitted < this.setting.groups && this.decide(2) > 0) {
      named.push({ groupId: `g${this.submitted++}`, samples: this.setting.samples });
    }
    const said = await this.follower?.reconcile(step, named);
    const { counted, aborts } = this.model.reconcile(step, named);
    this.same(said, { counted, aborts: namesOf(aborts) });
    for (const { groupId } of named) this.trained.add(groupId);
    this.steps = step;
  }

  private async check(): Promise<void> {
    this.modelMs += this.decide(50);
    const { submitted, ...states } = this.model.requestCounts;
    expect(Object.values(states).reduce((sum, count) => sum + count, 0)).toBe(submitted);
    if (this.model.round?.state === 'open') checkOpen(this.model.round);
    const kept = [...this.groups.values()].filter((group) => !isForgotten(group));
    await this.follower?.compare(this.model, kept);
  }

  /** Mostly one that a worker still has; nothing about one that was folded with its round. */
  private anAttempt(): GivenAttempt | undefined {
    const attempt = this.pick(this.decide(6) === 0 ? this.given : this.given.filter(isHeld));
    return attempt && !isForgotten(attempt.request.group) ? attempt : undefined;
  }

  private segment({ request, number }: GivenAttempt): ModelSegment {
    const tokens = (request.savedSegment?.tokens ?? 0) + this.decide(200);
    return { attempt: number, weightVersion: request.group.round.weightVersion, tokens };
  }

  private async nowMs(): Promise<number> {
    return (await this.follower?.nowMs()) ?? this.modelMs;
  }

  private sameEnd(said: Ended | undefined, { state, aborts }: { state: string; aborts: ModelAbort[] }): void {
    this.same(said, { state, aborts: namesOf(aborts) });
  }

  private same(said: unknown, expected: unknown): void {
    if (this.follower) expect(said).toEqual(expected);
  }

  private pick<T>(list: readonly T[]): T | undefined {
    return list[this.decide(Math.max(1, list.length))];
  }
}

const isHeld = ({ request, number }: GivenAttempt): boolean =>
  request.attempt === number && ['claimed', 'running', 'cutting'].includes(request.state);
