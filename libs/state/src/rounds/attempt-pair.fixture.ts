import { attemptNumber, type Epoch, isBroomwagonError } from '@broomwagon/contracts';
import { RoundModel, type ModelAbort, type ModelRequest, type ModelSegment } from '@broomwagon/policies';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { expect } from 'vitest';
import { connectRedis } from '../redis';
import { RequestStore, type AttemptFence } from '../requests';
import { RoutingStore } from '../routing';
import { FunctionRunner } from '../library/function-runner';
import { isOver } from './model-views.fixture';

export const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();
export const runner = new FunctionRunner(redis, prefix);
const requests = new RequestStore(runner);
const routing = new RoutingStore(runner);
export const JOB = 'job';
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
/** Claims and attempts, on the scripts and on the model; what the trainer does is in RoundPair. */
export class AttemptPair {
  protected readonly model = new RoundModel();
  protected readonly pool = `pair-${opened++}`;
  private readonly epochs = new Map<string, Epoch>();
  /** Every attempt ever given out, so that late messages can be sent. */
  private readonly given: Held[] = [];
  private registrations = 0;

  constructor(protected readonly decide: (choices: number) => number) {}

  async start(): Promise<void> {
    for (const workerId of WORKERS) await this.register(workerId);
  }

  async end(): Promise<void> {
    await flushPrefix(testRedisUrl(), `${runner.rootKey(this.pool)}:`);
  }

  protected async claim(): Promise<void> {
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

  protected async checkpoint(): Promise<void> {
    await this.say(async ({ request, number, fence }, made) => {
      const answer = await requests.checkpoint(this.pool, { ...fence, ...wire(made) }).catch(codeOf);
      const expected = this.model.checkpoint(request, number, made);
      expect(typeof answer === 'string' ? answer : answer.action).toBe(expected);
    });
  }

  protected async complete(): Promise<void> {
    await this.say(async ({ request, number, fence }, made) => {
      const answer = await requests
        .complete(this.pool, { ...fence, ...wire(made), finishReason: 'stop' })
        .catch(codeOf);
      const expected = this.model.complete(request, number, made, await this.nowMs());
      this.compareAnswer(answer, expected);
    });
  }

  protected async fail(): Promise<void> {
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

  protected compareAborts(real: readonly AttemptFence[], expected: readonly ModelAbort[]): void {
    expect(real.map(({ requestId, attempt }) => `${requestId} ${attemptNumber(attempt)}`).sort()).toEqual(
      expected.map(({ request, attempt }) => `${idOf(request)} ${attempt}`).sort(),
    );
  }

  /** Something about an attempt, mostly one of the last; nothing about one that was folded with its round. */
  protected async say(act: (held: Held, made: ModelSegment) => Promise<void>): Promise<void> {
    const recent = this.decide(6) === 0 ? this.given : this.given.filter(isHeld);
    const held = recent[this.decide(Math.max(1, recent.length))];
    if (held === undefined || this.isGone(held.request) || this.isFenced(held)) return;
    const { request, number } = held;
    const tokens = (request.checkpoint?.tokens ?? 0) + this.decide(200);
    await act(held, { attempt: number, weightVersion: request.group.round.weightVersion, tokens });
  }

  protected isGone({ group }: ModelRequest): boolean {
    return group.state === 'trained' || (group.state === 'failed' && isOver(group.round));
  }

  private isFenced({ fence }: Held): boolean {
    return this.epochs.get(fence.workerId) !== fence.workerEpoch;
  }

  /** Only with one attempt in hand: the order in which several come back is the scripts' own. */
  protected async expiredWorker(): Promise<void> {
    const workerId = WORKERS[this.decide(WORKERS.length)]!;
    if (this.model.held(workerId).size > 1) return;
    await routing.deregisterWorker(this.pool, workerId, this.epochs.get(workerId)!);
    for (let more = true; more;) ({ more } = await requests.expiredAttempts(this.pool));
    this.model.expiredHolder(workerId, await this.nowMs());
    await this.register(workerId);
  }

  protected async register(workerId: string): Promise<void> {
    const registrationId = `reg${this.registrations++}`;
    const { workerEpoch } = await routing.registerWorker(this.pool, { workerId, registrationId, ttlMs: 600_000 });
    this.epochs.set(workerId, workerEpoch);
  }

  /** The time of the last script that looked at it. */
  protected async nowMs(): Promise<number> {
    return Number(await redis.hget(`${runner.rootKey(this.pool)}:meta`, 'clockMs'));
  }
}

export const idOf = (request: ModelRequest): string => `${JOB}/${request.group.groupId}/${request.index}`;
export const codeOf = (error: unknown): string => {
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
