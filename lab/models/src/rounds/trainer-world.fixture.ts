import type { AbortScope, TailPolicy } from '@broomwagon/contracts';
import { expect } from 'vitest';
import { expectSame } from './cheap-expect.fixture';
import { checkOpen } from './check-open.fixture';
import { cloneGraph } from './clone-graph.fixture';
import type { Decide } from './interleave.fixture';
import { planRound } from '@broomwagon/policies';
import {
  type Ended,
  type GivenAttempt,
  isForgotten,
  isOver,
  listAttemptNames,
  type RoundFollower,
} from './round-follower.fixture';
import { RoundModel } from './round-model';
import type { ModelAbort, ModelGroup, ModelRound, ModelSubmission } from './round-model.types';

export interface RoundSetting {
  groups: number;
  samples: number;
  groupsPerStep: number;
  policy: TailPolicy;
  /** `minSamples` of every group; default: `samples`. */
  minSamples?: number;
  /** Abort scope of every round. */
  abortScope?: AbortScope;
}

const VERSIONS_PER_STEP = 2;
/** `maxTokens` of the groups, in turn. */
const MAX_TOKENS = [100, 6_400, 700, 130];
/** Reconciles of one run: few, since Redis forgets a trained group after 16 further rounds. */
const MAX_RECONCILES = 3;
const STEPS_PER_RECONCILE = 2;
const MAX_RESTORES = 3;
const SNAPSHOTS_KEPT = 2;

/** Domain of the group at this position. The last domain has no quota. */
const getDomain = (position: number): string => ['d0', 'constructor', 'live:d0'][position % 3]!;

interface Saved {
  tag: string;
  state: Pick<TrainerWorld, 'model' | 'trained' | 'steps'> & { groups: Map<string, ModelGroup> };
}

/** A trainer that checks every batch, on the model of rounds, with the helpers of all acts. */
export class TrainerWorld {
  model = new RoundModel();
  trained = new Set<string>();
  steps = 0;
  protected groups = new Map<string, ModelGroup>();
  protected given: GivenAttempt[] = [];
  private submitted = 0;
  private modelMs = 0;
  private reconciles = 0;
  /** Groups that the step of the last plan trains. */
  private planned = 0;
  /** Number of early ends of rounds, after which groups may be cut more often, and become older, than policies say. */
  protected brokenOff = 0;
  /** All rounds that the model has opened, oldest first. */
  protected rounds: ModelRound[] = [];
  restores = 0;
  private saved: Saved[] = [];
  private tags = 0;

  constructor(
    readonly setting: RoundSetting,
    protected readonly decide: Decide,
    protected readonly follower?: RoundFollower,
  ) {}

  /** Takes the trainer's next step. False when all groups are trained. */
  protected async train(): Promise<boolean> {
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
    for (const domain of remaining.map(getDomain)) byDomain.set(domain, (byDomain.get(domain) ?? 0) + 1);
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
    const opening = { ...plan, kind, policy, weightVersion: this.computeVersion(step), abortScope };
    const said = await this.follower?.open(opening, progress);
    const state = this.model.open(opening, await this.nowMs());
    this.same(said, state);
    if (state === 'ROUND_SETTLING') return true;
    expect(['open', 'completed']).toContain(state);
    const round = this.model.round!;
    this.rounds.push(round);
    if (policy.maxLongtailShare === undefined && this.model.longtail.pinnedGroups(step) > 0) {
      expect(round.reserved + round.accepted.length, 'a pinned group waits').toBe(neededGroups);
    }
    await this.check();
    this.planned = neededGroups;
    await this.submit(newGroups);
    return true;
  }

  /** Weight version of a step. Versions never decrease, so a step that is trained again has another version. */
  private computeVersion(step: number): number {
    const mostSteps = this.setting.groups + MAX_RECONCILES * STEPS_PER_RECONCILE;
    return VERSIONS_PER_STEP * (step + this.restores * mostSteps);
  }

  /** Submits new groups of the plan, or replacements for other groups. */
  private async submit(count: number): Promise<void> {
    if (count <= 0) return;
    const { samples, minSamples } = this.setting;
    const fresh: ModelSubmission[] = [];
    for (let position = this.submitted; position < this.submitted + count; position++) {
      const groupId = `g${position}`;
      const maxTokens = MAX_TOKENS[position % MAX_TOKENS.length];
      const lengths = await this.follower?.readLengths(groupId);
      fresh.push({ groupId, samples, minSamples, maxTokens, domain: getDomain(position), lengths });
    }
    this.submitted += count;
    expect(this.submitted, 'more groups were asked for than there are').toBeLessThanOrEqual(this.setting.groups);
    await this.follower?.submit(this.model.round!, fresh);
    for (const group of this.model.submit(fresh, await this.nowMs())) this.groups.set(group.groupId, group);
  }

  /** Reports the rewards of a group as the trainer, or reports them again. */
  protected async reward(): Promise<void> {
    const { round } = this.model;
    const group = round && !isOver(round) ? this.pick(round.accepted) : undefined;
    if (group === undefined) return;
    const isEqual = this.decide(2) === 0;
    const remaining = this.setting.groups - this.submitted;
    const said = await this.follower?.reward(group, isEqual, remaining);
    this.same(said, this.model.reward(group, isEqual, remaining, await this.nowMs()));
  }

  /** Closes the round after checking that every accepted group is new, whole and within its bounds. */
  private async close(round: ModelRound): Promise<void> {
    const { policy, samples, minSamples = samples } = this.setting;
    const replaced = [...round.outcomes.values()].filter((outcome) => outcome === 'replaced').length;
    // Replacement groups may fail like any group.
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
      const versions = finished.flatMap(({ segments }) =>
        segments.filter(({ tokens }) => tokens > 0).map(({ weightVersion }) => weightVersion),
      );
      const oldest = Math.min(round.weightVersion, ...versions);
      expect(round.weightVersion - oldest).toBeLessThanOrEqual(policy.maxVersionSpan ?? Infinity);
      expect(cuts).toBeLessThanOrEqual(policy.maxCuts ?? Infinity);
    }
    await this.follower?.close(round);
    this.model.close();
    this.steps += 1;
  }

  protected async fold(): Promise<void> {
    await this.follower?.fold(this.rounds);
    this.model.fold();
  }

  /** Lets the trainer take over the job and report the next step as trained, with any groups. */
  protected async reconcile(): Promise<void> {
    if (this.model.round === undefined || this.reconciles === MAX_RECONCILES) return;
    this.reconciles += 1;
    this.brokenOff += 1;
    const step = this.steps + 1 + this.decide(STEPS_PER_RECONCILE);
    // The requests of a failed group are forgotten with its round.
    const known = [...this.groups.values()].filter((group) => !(group.state === 'failed' && isOver(group.round)));
    const named: (ModelGroup | ModelSubmission)[] = known.filter(() => this.decide(3) === 0);
    if (this.submitted < this.setting.groups && this.decide(2) > 0) {
      named.push({ groupId: `g${this.submitted++}`, samples: this.setting.samples });
    }
    const said = await this.follower?.reconcile(step, named);
    const { counted, aborts } = this.model.reconcile(step, named);
    this.same(said, { counted, aborts: listAttemptNames(aborts) });
    for (const { groupId } of named) this.trained.add(groupId);
    this.steps = step;
  }

  /** Takes a snapshot between two rounds; it must be refused unless the job is at rest. */
  protected async snapshot(): Promise<void> {
    if (!(await this.isBetweenRounds())) return;
    const tag = `t${this.tags++}`;
    this.same(await this.follower?.snapshot(tag), this.isAtRest() ? 'complete' : 'ROUND_SETTLING');
    if (!this.isAtRest()) return;
    const { model, groups, rounds, trained, steps, submitted } = this;
    const state = cloneGraph({ model, groups, rounds, trained, steps, submitted });
    this.saved = [...this.saved.slice(1 - SNAPSHOTS_KEPT), { tag, state }];
  }

  /** Restores the job to one of its last snapshots. */
  protected async restore(): Promise<void> {
    const saved = this.pick(this.saved);
    if (saved === undefined || this.restores === MAX_RESTORES || !(await this.isBetweenRounds())) return;
    this.same(await this.follower?.restore(saved.tag), this.isAtRest() ? 'restored' : 'ROUND_SETTLING');
    if (!this.isAtRest()) return;
    this.restores += 1;
    this.brokenOff += 1;
    this.saved = this.saved.slice(0, this.saved.indexOf(saved) + 1);
    // A snapshot has no dropped groups: a dropped group that was later reconciled as trained stays unknown.
    const trained = [...this.groups.values()].filter(({ state }) => state === 'trained');
    for (const { groups } of this.saved.map(({ state }) => state)) {
      for (const { groupId } of trained) if (groups.get(groupId)?.state === 'dropped') groups.delete(groupId);
    }
    Object.assign(this, cloneGraph(saved.state));
    this.given = [];
  }

  private async isBetweenRounds(): Promise<boolean> {
    const { round } = this.model;
    if (round === undefined || !isOver(round)) return false;
    await this.fold();
    return true;
  }

  /** Whether no group is settling and no request is pending or held. */
  private isAtRest(): boolean {
    const { pending, claimed, running, cutting } = this.model.requestCounts;
    return this.model.groups.settling + pending + claimed + running + cutting === 0;
  }

  protected async check(): Promise<void> {
    this.modelMs += this.decide(50);
    const { submitted, ...states } = this.model.requestCounts;
    expectSame(
      Object.values(states).reduce((sum, count) => sum + count, 0),
      submitted,
    );
    if (this.model.round?.state === 'open') checkOpen(this.model.round);
    const kept = [...this.groups.values()].filter((group) => !isForgotten(group));
    await this.follower?.compare(this.model, kept, this.rounds);
  }

  protected async nowMs(): Promise<number> {
    return (await this.follower?.nowMs()) ?? this.modelMs;
  }

  protected sameEnd(said: Ended | undefined, { state, aborts }: { state: string; aborts: ModelAbort[] }): void {
    this.same(said, { state, aborts: listAttemptNames(aborts) });
  }

  protected same(said: unknown, expected: unknown): void {
    if (this.follower) expect(said).toEqual(expected);
  }

  protected pick<T>(list: readonly T[]): T | undefined {
    return list[this.decide(Math.max(1, list.length))];
  }
}
