import { type AbortScope, type Epoch, type TailPolicy } from '@broomwagon/contracts';
import { planRound, roundTerms, type ModelGroup, type ModelRound, type PlanSnapshot } from '@broomwagon/policies';
import { expect } from 'vitest';
import { AbortStore, type AbortSelector } from '../aborts';
import type { AttemptFence } from '../requests';
import { AttemptPair, codeOf, idOf, JOB, redis, runner } from './attempt-pair.fixture';
import { inOrder, isOver, normalized, totalsOf, viewOf, viewOfRound } from './model-views.fixture';
import { readJob } from './read-job.fixture';
import { RoundStore } from './round.store';

const rounds = new RoundStore(runner);
const aborts = new AbortStore(runner);

export interface PairSetting {
  groups: number;
  samples: number;
  groupsPerStep: number;
  policy: TailPolicy;
  /** Of every group; default: `samples`. */
  minSamples?: number;
  /** Of every round. */
  abortScope?: AbortScope;
}

/** Reconciles of one run: Redis forgets what it has trained when it has had 16 rounds since. */
const MOST_RECONCILES = 3;

const domainOf = (position: number): string => `d${position % 3}`;

/** The scripts on a real Redis and the model, driven by the same events. Every event compares what both answer. */
export class RoundPair extends AttemptPair {
  private readonly groups = new Map<string, ModelGroup>();
  private readonly roundIds = new Map<ModelRound, string>();
  private trainerEpoch?: Epoch;
  private submitted = 0;
  private takeovers = 0;
  private abortIds = 0;
  steps = 0;

  constructor(
    private readonly setting: PairSetting,
    decide: (choices: number) => number,
  ) {
    super(decide);
  }

  /** The next step of the trainer. False when all is trained. */
  async train(): Promise<boolean> {
    const { round } = this.model;
    if (round === undefined || isOver(round)) return this.open();
    if (round.state === 'completed') await this.close(round);
    else await this.work();
    return true;
  }

  private async open(): Promise<boolean> {
    const { groups, samples, minSamples, abortScope, groupsPerStep, policy } = this.setting;
    const expected = this.model.snapshot();
    const snapshot = await this.snapshot();
    expect(normalized(snapshot)).toEqual(normalized(expected));
    // The scripts open a round and take its groups one after the other, the model at once.
    for (const [position, { durationMs }] of (snapshot.history ?? []).entries()) {
      expect(Math.abs(durationMs - expected.history![position]!.durationMs)).toBeLessThan(10_000);
    }
    const remainingGroups = groups - this.submitted;
    const remainingByDomain: Record<string, number> = {};
    for (let position = this.submitted; position < groups; position++) {
      remainingByDomain[domainOf(position)] = (remainingByDomain[domainOf(position)] ?? 0) + 1;
    }
    const plan = planRound(expected, { groupsPerStep, remainingGroups, remainingByDomain, policy });
    if (plan.kind === 'done') return false;
    const roundId = `r${plan.step}`;
    const opening = { ...plan, kind: plan.kind, policy, weightVersion: 2 * plan.step, abortScope };
    const common = { ...opening, job: JOB, roundId, orphanAfterMs: 600_000, trainerEpoch: this.trainerEpoch };
    const terms = roundTerms(policy, opening, expected);
    const answer = await rounds.open(this.pool, { ...common, ...terms }).catch(codeOf);
    let state: string = typeof answer === 'string' ? answer : answer.state;
    while (state === 'opening') ({ state } = await rounds.take(this.pool, { job: JOB, roundId }));
    expect(this.model.open(opening, await this.nowMs())).toBe(state);
    if (typeof answer === 'string') {
      await this.work();
      return true;
    }
    this.roundIds.set(this.model.round!, roundId);
    this.trainerEpoch = answer.trainerEpoch;
    await this.compare();
    const fresh = Array.from({ length: plan.newGroups }, (_, offset) => this.submitted + offset).map((position) => ({
      groupId: `g${position}`,
      samples,
      minSamples,
      domain: domainOf(position),
    }));
    this.submitted += fresh.length;
    if (fresh.length === 0) return true;
    const stored = fresh.map((group) => ({ ...group, digest: 'd', maxTokens: 100, promptRef: 'p', sampling: '{}' }));
    await rounds.submit(this.pool, { job: JOB, roundId, trainerEpoch: answer.trainerEpoch }, stored);
    for (const group of this.model.submit(fresh, await this.nowMs())) this.groups.set(group.groupId, group);
    return true;
  }

  private async snapshot(): Promise<PlanSnapshot> {
    const { stamp: _, ...snapshot } = await rounds.snapshot(this.pool, { job: JOB }, true);
    return snapshot as unknown as PlanSnapshot;
  }

  private async close(round: ModelRound): Promise<void> {
    const args = { job: JOB, roundId: this.roundIds.get(round)! };
    const { groups, cursor } = await rounds.results(this.pool, { ...args, limit: 128 });
    expect(groups.map(({ groupId }) => groupId)).toEqual(round.accepted.map(({ groupId }) => groupId));
    for (const { groupId, samples, cuts } of groups) {
      const model = this.groups.get(groupId)!;
      const finished = model.requests.filter(({ state }) => state === 'finished');
      expect(samples.map((one) => [one.sampleIndex, one.tokenCount])).toEqual(
        finished.map(({ index, tokens }) => [index, tokens]),
      );
      expect(
        samples.map(({ segments }) => segments.map((one) => [one.attempt, one.weightVersion, one.tokenCount])),
      ).toEqual(finished.map(({ segments }) => segments.map((one) => [one.attempt, one.weightVersion, one.tokens])));
      expect(cuts).toBe(model.cuts);
    }
    await rounds.close(this.pool, { ...args, trainerEpoch: this.trainerEpoch!, cursor });
    this.model.close();
    this.steps += 1;
  }

  async work(): Promise<void> {
    switch (this.decide(8)) {
      case 0:
      case 1:
        return this.claim();
      case 2:
        return this.checkpoint();
      case 3:
      case 4:
        return this.complete();
      case 5:
        return this.fail();
      case 6:
        return this.cut();
      default:
        return this.seldom();
    }
  }

  private async seldom(): Promise<void> {
    switch (this.decide(7)) {
      case 0:
        return this.expiredWorker();
      case 5:
        return this.stopSample();
      case 6:
        return this.reconcile();
      case 1:
        return this.drop();
      case 2:
        return this.expire();
      default:
        return this.fold();
    }
  }

  /** The trainer takes the job over and says that it has trained the next step, with whatever groups there are. */
  private async reconcile(): Promise<void> {
    const { round } = this.model;
    if (round === undefined || this.takeovers === MOST_RECONCILES || this.decide(2) > 0) return;
    const step = this.steps + 1 + this.decide(2);
    // The requests of a failed group are forgotten with its round.
    const known = [...this.groups.values()].filter((group) => !(group.state === 'failed' && isOver(group.round)));
    const named = known.filter(() => this.decide(3) === 0);
    const unknown = this.decide(2) * Math.min(1, this.setting.groups - this.submitted);
    const never = { groupId: `g${this.submitted}`, samples: this.setting.samples };
    const said = unknown === 0 ? named : [...named, never];
    this.submitted += unknown;
    const { trainerEpoch } = await rounds.takeover(this.pool, JOB, `takeover-${this.takeovers++}`);
    this.trainerEpoch = trainerEpoch;
    const groups = said.map(({ groupId, samples }) => ({ groupId, samples }));
    const answer = await rounds.reconcile(this.pool, {
      job: JOB,
      trainerEpoch,
      step,
      groups,
      isLast: true,
      groupIds: said.map(({ groupId }) => groupId),
    });
    const { cancelledRoundId, unknown: unknownIds } = answer;
    if (cancelledRoundId !== undefined) {
      for (let more = true; more;)
        ({ more } = await rounds.giveBack(this.pool, { job: JOB, roundId: cancelledRoundId }));
    }
    const expected = this.model.reconcile(step, said);
    this.compareAborts(answer.aborts, expected.aborts);
    expect(answer.countedGroups).toBe(expected.counted);
    expect(unknownIds).toEqual([]);
    expect(answer.stepsTrained).toBe(step);
    this.steps = step;
  }

  /** One look at all that completed rounds have left, and some holders confirm. */
  private async cut(): Promise<void> {
    const told: AttemptFence[] = [];
    for (const roundId of this.roundIds.values()) {
      for (let cursor: number | undefined = 0; cursor !== undefined;) {
        const page = await rounds.cut(this.pool, { job: JOB, roundId }, cursor);
        told.push(...page.aborts);
        ({ cursor } = page);
      }
    }
    this.compareAborts(told, this.model.cut());
  }

  private async fold(): Promise<void> {
    for (const [round, roundId] of this.roundIds) {
      if (!isOver(round)) continue;
      for (let done = false; !done;) {
        const page = await rounds.fold(this.pool, { job: JOB, roundId });
        done = page.done || page.waiting;
      }
    }
    this.model.fold();
  }

  private async drop(): Promise<void> {
    const group = this.groups.get(`g${this.decide(this.setting.groups)}`);
    if (group === undefined || this.decide(3) > 0) return;
    const told = await this.abort({ groupId: group.groupId, job: JOB });
    this.compareAborts(told, this.model.dropGroup(group, await this.nowMs()));
  }

  private async stopSample(): Promise<void> {
    const group = this.groups.get(`g${this.decide(this.setting.groups)}`);
    const request = group?.requests[this.decide(Math.max(1, group.requests.length))];
    if (request === undefined || this.isGone(request)) return;
    const told = await this.abort({ requestIds: [idOf(request)], scope: 'sample' });
    this.compareAborts(told, this.model.stopSample(request, await this.nowMs()));
  }

  private async abort(selector: AbortSelector): Promise<AttemptFence[]> {
    const abortId = `a${this.abortIds++}`;
    await aborts.begin(this.pool, { abortId, selector, reason: 'test', keptMs: 600_000 });
    const told: AttemptFence[] = [];
    for (let more = true; more;) {
      const page = await aborts.select(this.pool, abortId);
      told.push(...page.aborts);
      more = page.more;
    }
    return told;
  }

  private async expire(): Promise<void> {
    const expired = await rounds.expire(this.pool);
    if (expired.length > 0) this.model.expire(await this.nowMs());
  }

  /** All that both sides hold, side by side. */
  async compare(): Promise<void> {
    const { model } = this;
    const { round } = model;
    const real = await readJob(redis, runner.rootKey(this.pool), round && this.roundIds.get(round));
    const { trained, failed, dropped, settling } = model.groups;
    const groups = [...this.groups.values()].filter(
      (group) => group.state !== 'trained' && !(group.state === 'failed' && isOver(group.round)),
    );
    expect({ ...real, groups: undefined, round: undefined }).toEqual({
      requestCounts: model.requestCounts,
      counts: { trained, failed, dropped, settling },
      longtail: inOrder([...model.longtail.groups()]),
      wasted: totalsOf([...this.roundIds.keys()].map(({ wasted }) => wasted)),
      groups: undefined,
      round: undefined,
    });
    expect(real.groups.filter(({ groupId }) => groups.some((group) => group.groupId === groupId))).toEqual(
      groups.map(viewOf).toSorted((a, b) => (a.groupId < b.groupId ? -1 : 1)),
    );
    if (round !== undefined) expect(real.round).toEqual(viewOfRound(round));
  }
}
