import { attemptNumber, type AbortScope, type Epoch, isBroomwagonError, type TailPolicy } from '@broomwagon/contracts';
import {
  planRound,
  RoundModel,
  roundTerms,
  type ModelAbort,
  type ModelGroup,
  type ModelRequest,
  type ModelRound,
  type ModelSegment,
  type PlanSnapshot,
} from '@broomwagon/policies';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { expect } from 'vitest';
import { AbortStore, type AbortSelector } from '../aborts';
import { connectRedis } from '../redis';
import { RequestStore, type AttemptFence } from '../requests';
import { RoutingStore } from '../routing';
import { ScriptRunner } from '../scripts/script-runner';
import { inOrder, normalized, totalsOf, viewOf, viewOfRound } from './model-views.fixture';
import { readJob } from './read-job.fixture';
import { RoundStore } from './round.store';

const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();
const runner = new ScriptRunner(redis, prefix);
const rounds = new RoundStore(runner);
const requests = new RequestStore(runner);
const aborts = new AbortStore(runner);
const routing = new RoutingStore(runner);
const JOB = 'job';
const WORKERS = ['w0', 'w1', 'w2'];
let opened = 0;

/** Ends the connection and removes all keys. */
export async function closeStores(): Promise<void> {
  await redis.quit();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
}

/** A request of both sides. */
interface Held {
  request: ModelRequest;
  /** The attempt, as the model names it. */
  number: number;
  fence: AttemptFence;
}
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

/** The scripts on a real Redis and the model, driven by the same events. Every event compares what both answer. */
export class RoundPair {
  private readonly model = new RoundModel();
  private readonly pool = `pair-${opened++}`;
  private readonly epochs = new Map<string, Epoch>();
  private readonly groups = new Map<string, ModelGroup>();
  /** Every attempt ever given out, so that late messages can be sent. */
  private readonly given: Held[] = [];
  private readonly roundIds = new Map<ModelRound, string>();
  private trainerEpoch?: Epoch;
  private submitted = 0;
  private registrations = 0;
  private abortIds = 0;
  steps = 0;

  constructor(
    private readonly setting: PairSetting,
    private readonly decide: (choices: number) => number,
  ) {}

  async start(): Promise<void> {
    for (const workerId of WORKERS) await this.register(workerId);
  }

  async end(): Promise<void> {
    await flushPrefix(testRedisUrl(), `${runner.rootKey(this.pool)}:`);
  }

  /** The next step of the trainer. False when all is trained. */
  async train(): Promise<boolean> {
    const { round } = this.model;
    if (round === undefined || round.state === 'closed') return this.open();
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
    switch (this.decide(6)) {
      case 0:
        return this.voidWorker();
      case 5:
        return this.stopSample();
      case 1:
        return this.drop();
      case 2:
        return this.expire();
      default:
        return this.fold();
    }
  }

  private async claim(): Promise<void> {
    const workerId = WORKERS[this.decide(WORKERS.length)]!;
    const fence = { workerId, workerEpoch: this.epochs.get(workerId)! };
    const max = 1 + this.decide(4);
    const { claims } = await requests.claim(this.pool, {
      claimId: `c${opened}-${this.given.length}-${Math.random()}`,
      ...fence,
      max,
    });
    const expected = this.model.claim(max, workerId);
    expect(claims.map(({ requestId, attempt }) => [requestId, attemptNumber(attempt)])).toEqual(
      expected.map((request) => [idOf(request), request.attempt]),
    );
    for (const [index, request] of expected.entries()) {
      const { attempt } = claims[index]!;
      this.given.push({ request, number: request.attempt, fence: { requestId: idOf(request), attempt, ...fence } });
    }
  }

  private async checkpoint(): Promise<void> {
    await this.say(async ({ request, number, fence }, made) => {
      const answer = await requests.checkpoint(this.pool, { ...fence, ...wire(made) }).catch(codeOf);
      const expected = this.model.checkpoint(request, number, made);
      expect(typeof answer === 'string' ? answer : answer.action).toBe(expected);
    });
  }

  private async complete(): Promise<void> {
    await this.say(async ({ request, number, fence }, made) => {
      const answer = await requests
        .complete(this.pool, { ...fence, ...wire(made), finishReason: 'stop' })
        .catch(codeOf);
      const expected = this.model.complete(request, number, made, await this.nowMs());
      this.compareAnswer(answer, expected);
    });
  }

  private async fail(): Promise<void> {
    await this.say(async ({ request, number, fence }, made) => {
      const how = { countsAsFailure: this.decide(3) === 0, retryable: this.decide(8) > 0 };
      const timedOut = this.decide(6) === 0;
      const answer = await requests
        .fail(this.pool, { ...fence, ...wire(made), ...how, reason: timedOut ? 'timeout' : 'engine-error' })
        .catch(codeOf);
      const expected = this.model.fail(request, number, { segment: made, ...how, timedOut }, await this.nowMs());
      this.compareAnswer(answer, expected);
    });
  }

  private compareAnswer(
    answer: string | { state: string; aborts: AttemptFence[] },
    expected: { state: string; aborts: ModelAbort[] },
  ): void {
    if (typeof answer === 'string') return expect(answer).toBe(expected.state);
    expect(answer.state).toBe(expected.state);
    this.compareAborts(answer.aborts, expected.aborts);
  }

  private compareAborts(real: readonly AttemptFence[], expected: readonly ModelAbort[]): void {
    expect(real.map(({ requestId, attempt }) => `${requestId} ${attemptNumber(attempt)}`).sort()).toEqual(
      expected.map(({ request, attempt }) => `${idOf(request)} ${attempt}`).sort(),
    );
  }

  /** Something about an attempt, mostly one of the last; nothing about one that was folded with its round. */
  private async say(act: (held: Held, made: ModelSegment) => Promise<void>): Promise<void> {
    const recent = this.decide(6) === 0 ? this.given : this.given.filter(isHeld);
    const held = recent[this.decide(Math.max(1, recent.length))];
    if (held === undefined || this.isGone(held.request) || this.isFenced(held)) return;
    const { request, number } = held;
    const tokens = (request.checkpoint?.tokens ?? 0) + this.decide(200);
    await act(held, { attempt: number, weightVersion: request.group.round.weightVersion, tokens });
  }

  private isGone({ group }: ModelRequest): boolean {
    return group.state === 'trained' || (group.state === 'failed' && group.round.state === 'closed');
  }

  private isFenced({ fence }: Held): boolean {
    return this.epochs.get(fence.workerId) !== fence.workerEpoch;
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
      if (round.state !== 'closed') continue;
      for (let done = false; !done;) {
        const page = await rounds.fold(this.pool, { job: JOB, roundId });
        done = page.done || page.waiting;
      }
    }
    this.model.fold();
  }

  /** Only with one attempt in hand: the order in which several come back is the scripts' own. */
  private async voidWorker(): Promise<void> {
    const workerId = WORKERS[this.decide(WORKERS.length)]!;
    if (this.model.held(workerId).size > 1) return;
    await routing.deregisterWorker(this.pool, workerId, this.epochs.get(workerId)!);
    for (let more = true; more;) ({ more } = await requests.voidAttempts(this.pool));
    this.model.voidHolder(workerId, await this.nowMs());
    await this.register(workerId);
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
      (group) => group.state !== 'trained' && !(group.state === 'failed' && group.round.state === 'closed'),
    );
    expect({ ...real, groups: undefined, round: undefined }).toEqual({
      books: model.books,
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

  private async register(workerId: string): Promise<void> {
    const registrationId = `reg${this.registrations++}`;
    const { workerEpoch } = await routing.registerWorker(this.pool, { workerId, registrationId, ttlMs: 600_000 });
    this.epochs.set(workerId, workerEpoch);
  }

  /** The time of the last script that looked at it. */
  private async nowMs(): Promise<number> {
    return Number(await redis.hget(`${runner.rootKey(this.pool)}:meta`, 'clockMs'));
  }
}

const idOf = (request: ModelRequest): string => `${JOB}/${request.group.groupId}/${request.index}`;
const domainOf = (position: number): string => `d${position % 3}`;
const codeOf = (error: unknown): string => {
  if (!isBroomwagonError(error) || error.code === 'INTERNAL') throw error;
  return error.code;
};

function isHeld({ request, number }: Held): boolean {
  return request.attempt === number && ['claimed', 'running', 'cutting'].includes(request.state);
}

function wire({ attempt, weightVersion, tokens }: ModelSegment): { segment: string; tokens: number } {
  const segment = { attempt, serverId: 's', serverEpoch: 'e1', weightVersion, tokenCount: tokens, ref: 'ref' };
  return { segment: JSON.stringify(segment), tokens };
}
