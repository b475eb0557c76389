import {
  type AttemptId,
  type BroomwagonError,
  type Claim,
  type Epoch,
  isBroomwagonError,
  type TailPolicy,
} from '@broomwagon/contracts';
import { attemptNumber, flushPrefix, testPool, secondDatabaseUrl } from '@broomwagon/testing';
import { expect, inject } from 'vitest';
import { AbortStore } from '../aborts/abort.store';
import { LedgerStore } from '../ledger';
import { FunctionRunner } from '../library/function-runner';
import { LongtailStore } from '../longtail/longtail.store';
import { connectRedis } from '../redis';
import { type AttemptFence, RequestStore } from '../requests/request.store';
import { WorkerStore } from '../workers/worker.store';
import { RoundStore } from './round.store';
import { buildSegment, type Attempt } from './world-attempt.fixture';

export const redis = connectRedis({ url: secondDatabaseUrl() });
const { pool: prefix } = testPool();
export const runner = new FunctionRunner(redis, prefix);
/** The stores of all worlds of this process. */
export const rounds = new RoundStore(runner);
export const aborts = new AbortStore(runner);
export const longtail = new LongtailStore(runner);
export const ledgers = new LedgerStore(runner);
export const requests = new RequestStore(runner);
export const workers = new WorkerStore(runner);
/** Random data sets for each property. */
export const RUNS = 10 * inject('runsFactor');
let pools = 0;

/** Ends the connection and deletes the keys, after all worlds. */
export async function endWorlds(): Promise<void> {
  await redis.quit();
  await flushPrefix(secondDatabaseUrl(), `${prefix}:`);
}

/** Workers that run the requests they claim, with messages that may be lost or repeated. */
export class WorkerWorld {
  readonly pool = `lifecycle-${pools++}`;
  protected readonly workers = new Map<string, Epoch>();
  protected readonly held: Attempt[] = [];
  /** Acknowledged tokens by request and attempt, which `resume` must never lose. */
  protected readonly acknowledged = new Map<string, Map<AttemptId, number>>();
  protected readonly sent: (() => Promise<unknown>)[] = [];
  private registrations = 0;
  private claimIds = 0;

  constructor(
    readonly policy: TailPolicy,
    readonly decide: (choices: number) => number,
  ) {}

  async claim(): Promise<void> {
    const workerId = this.pick([...this.workers.keys()]);
    const holder = { workerId, workerEpoch: this.workers.get(workerId)! };
    const parking = this.decide(2) === 0 ? { waitMs: 60_000, replyTo: JSON.stringify(holder) } : {};
    const args = { claimId: `c${this.claimIds++}`, ...holder, max: 1 + this.decide(4), ...parking };
    const answer = await this.send(() => requests.claim(this.pool, args));
    if (isBroomwagonError(answer)) throw answer;
    this.hold(holder, answer.claims);
  }

  /** Answers parked claims. A claim of an expired epoch is refused. */
  async grant(): Promise<void> {
    const { grants } = await requests.grantClaims(this.pool);
    for (const { replyTo, claims, fenced } of grants) {
      const holder = JSON.parse(replyTo) as { workerId: string; workerEpoch: Epoch };
      expect(fenced ?? false).toBe(this.workers.get(holder.workerId) !== holder.workerEpoch);
      expect(claims.length > 0).toBe(!fenced);
      this.hold(holder, claims);
    }
  }

  private hold(holder: { workerId: string; workerEpoch: Epoch }, claims: readonly Claim[]): void {
    for (const claim of claims) {
      const fence = { requestId: claim.requestId, attempt: claim.attempt, ...holder };
      this.held.push({ claim, fence, tokens: 0 });
    }
  }

  async savePartial(): Promise<void> {
    const attempt = this.pick(this.held);
    if (attempt === undefined) return;
    attempt.tokens += this.decide(5);
    const args = { ...attempt.fence, ...buildSegment(attempt) };
    const answer = await this.send(() => requests.save(this.pool, args));
    if (isBroomwagonError(answer)) this.forget(attempt);
    else this.acknowledge(attempt);
  }

  async complete(): Promise<void> {
    const attempt = this.pick(this.held);
    if (attempt === undefined) return;
    attempt.tokens += 1;
    this.forget(attempt);
    const answer = await this.send(() =>
      requests.complete(this.pool, { ...attempt.fence, ...buildSegment(attempt), finishReason: 'stop' }),
    );
    if (!isBroomwagonError(answer)) this.acknowledge(attempt);
  }

  async fail(): Promise<void> {
    const attempt = this.pick(this.held);
    if (attempt === undefined) return;
    this.forget(attempt);
    const without = this.decide(2) === 0;
    if (!without) attempt.tokens += this.decide(3);
    const answer = await this.send(() =>
      requests.fail(this.pool, {
        ...attempt.fence,
        ...(without ? { tokens: 0 } : buildSegment(attempt)),
        reason: 'engine-error',
        countsAsFailure: this.policy.maxFailures === 0 && attemptNumber(attempt.fence.attempt) % 7 === 0,
        retryable: true,
      }),
    );
    if (!isBroomwagonError(answer) && !without) this.acknowledge(attempt);
  }

  /** Deregisters a worker and registers it again. Messages of its old epoch are refused. */
  async expiredWorker(): Promise<void> {
    const workerId = this.pick([...this.workers.keys()]);
    await workers.deregister(this.pool, { workerId, workerEpoch: this.workers.get(workerId)! });
    await this.register(workerId);
  }

  protected async confirm(commands: readonly AttemptFence[]): Promise<void> {
    for (const abort of commands) {
      const attempt = this.held.find(
        ({ fence }) => fence.requestId === abort.requestId && fence.attempt === abort.attempt,
      );
      // An abort may be lost, and some workers are slow.
      if (attempt === undefined || this.decide(3) === 0) continue;
      this.forget(attempt);
      await this.send(() =>
        requests.fail(this.pool, {
          ...attempt.fence,
          ...buildSegment(attempt),
          reason: 'aborted',
          countsAsFailure: false,
          retryable: true,
        }),
      ).then((answer) => isBroomwagonError(answer) || this.acknowledge(attempt));
    }
  }

  /** Repeats a message that was sent before. */
  async repeat(): Promise<void> {
    // Mostly one of the last messages is repeated, because it still finds its attempt or the next one.
    const message = this.pick(this.decide(4) === 0 ? this.sent : this.sent.slice(-6));
    await message?.().catch((error: unknown) => {
      if (!isBroomwagonError(error) || error.code === 'INTERNAL') throw error;
    });
  }

  protected async register(workerId: string): Promise<void> {
    const { workerEpoch } = await workers.register(this.pool, {
      workerId,
      registrationId: `reg${this.registrations++}`,
      ttlMs: 600_000,
    });
    this.workers.set(workerId, workerEpoch);
  }

  protected async send<T>(message: () => Promise<T>): Promise<T | BroomwagonError> {
    this.sent.push(message);
    try {
      return await message();
    } catch (error) {
      if (!isBroomwagonError(error) || error.code === 'INTERNAL') throw error;
      return error;
    }
  }

  protected acknowledge({ fence, tokens }: Attempt): void {
    const ofRequest = this.acknowledged.get(fence.requestId) ?? new Map<AttemptId, number>();
    ofRequest.set(fence.attempt, Math.max(tokens, ofRequest.get(fence.attempt) ?? 0));
    this.acknowledged.set(fence.requestId, ofRequest);
  }

  protected forget(attempt: Attempt): void {
    this.held.splice(this.held.indexOf(attempt), 1);
  }

  protected pick<T>(list: readonly T[]): T {
    return list[this.decide(Math.max(1, list.length))]!;
  }
}
