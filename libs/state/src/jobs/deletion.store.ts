import { setTimeout as delay } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { BroomwagonError, type JobId, type PoolName, type RoundId } from '@broomwagon/contracts';
import { Redis } from 'ioredis';
import { keysBelow } from '../audit/key-scan';
import { PayloadStore } from '../payload';
import { splitPages } from '../library/lists';
import { awaitAnswer } from '../redis';
import type { RedisClient } from '../redis-cluster';
import { PoolDirectory } from '../pools';
import { transition, FunctionRunner } from '../library/function-runner';

/** `open`: the caller must cancel the round first; `settling`: groups or attempts of the job have not ended yet. */
export type JobDeletion = { state: 'open'; roundId: RoundId } | { state: 'settling' } | { state: 'deleted' };

type Step = JobDeletion | { state: 'emptying' };
const deleteJob = transition<{ job: JobId; force: boolean; finish: boolean }, Step>('jobs/delete');

const PAGE = 512;
/** Maximum wait for parked calls to be answered: a load-balancer checks deadlines four times a second. */
const END_WAITING_MS = 3_000;
const WAITING_POLL_MS = 50;
/** Kinds of keys named after a job: `<kind>:<job>` or `<kind>:<job>/...`. */
const KINDS = /^(job-[a-z-]+|round(-[a-z-]+)?|snapshot(-[A-Za-z0-9-]+)?|group|request|waiters:claim:lane)$/;

/**
 * Deletes jobs and pools with all their records and payloads. Safe to repeat: the next call continues a deletion that
 * was interrupted.
 */
@Injectable()
export class DeletionStore {
  constructor(
    @Inject(Redis) private readonly redis: RedisClient,
    private readonly runner: FunctionRunner,
    private readonly payloads: PayloadStore,
    private readonly directory: PoolDirectory,
  ) {}

  /**
   * @param force returns `open` for a job with an open round instead of an error
   * @throws BroomwagonError JOB_IN_USE, UNAVAILABLE
   */
  async deleteJob(pool: PoolName, job: JobId, force = false): Promise<JobDeletion> {
    const step = await this.runner.run(deleteJob, pool, { job, force, finish: false });
    if (step.state !== 'emptying') return step;
    const root = `${this.runner.rootKey(pool)}:`;
    await this.unlink(root, (key) => isOfJob(key.slice(root.length), job));
    await this.payloads.removeAll({ pool, job });
    await this.runner.run(deleteJob, pool, { job, force, finish: true });
    return { state: 'deleted' };
  }

  /**
   * Deletes a pool with all its jobs. With `force`, deletes a pool in use too, and fences its workers.
   * @throws BroomwagonError POOL_IN_USE, UNAVAILABLE
   */
  async deletePool(pool: PoolName, jobs: readonly JobId[], force = false): Promise<void> {
    const { inUse } = await this.directory.readActivity(pool);
    if (inUse.length > 0 && !force) {
      throw new BroomwagonError(
        'POOL_IN_USE',
        `The pool ${pool} has ${inUse.join(', ')}; end these first, or use force`,
        {
          details: { inUse },
        },
      );
    }
    await this.endWaiting(pool);
    for (const job of jobs) await this.payloads.removeAll({ pool, job });
    const root = `${this.runner.rootKey(pool)}:`;
    // A call that is still parked, or was parked meanwhile, is answered at its deadline as long as the pool is known.
    const isNoWaiter = (key: string) => !key.startsWith(`${root}waiters:`);
    await this.unlink(root, isNoWaiter);
    // A probe or heartbeat may have read a record before and have written a key since. No record is left now.
    await this.unlink(root, isNoWaiter);
    if (await this.hasWaiters(pool)) return;
    await this.directory.remove(pool);
  }

  /** Makes the deadlines of parked acquires and claims pass now, so that each call is answered. */
  private async endWaiting(pool: PoolName): Promise<void> {
    for (const key of this.deadlineKeys(pool)) {
      if ((await awaitAnswer(this.redis.exists(key))) > 0) {
        await awaitAnswer(this.redis.call('ZUNIONSTORE', key, '1', key, 'WEIGHTS', '0'));
      }
    }
    for (const endsMs = Date.now() + END_WAITING_MS; Date.now() < endsMs && (await this.hasWaiters(pool));) {
      await delay(WAITING_POLL_MS);
    }
  }

  private async hasWaiters(pool: PoolName): Promise<boolean> {
    return (await awaitAnswer(this.redis.exists(...this.deadlineKeys(pool)))) > 0;
  }

  private deadlineKeys(pool: PoolName): string[] {
    const root = this.runner.rootKey(pool);
    return [`${root}:waiters:acquire:deadlines`, `${root}:waiters:claim:deadlines`];
  }

  private unlink(prefix: string, isMeant: (key: string) => boolean): Promise<void> {
    const unlinkAll = async () => {
      for await (const found of keysBelow(this.redis, prefix)) {
        for (const page of splitPages(found.filter(isMeant), PAGE)) await this.redis.unlink(...page);
      }
    };
    return awaitAnswer(unlinkAll());
  }
}

/** Whether a key belongs to a job. @param key key below the root of its pool */
function isOfJob(key: string, job: JobId): boolean {
  const at = key.indexOf(`:${job}`);
  if (at < 0 || !KINDS.test(key.slice(0, at))) return false;
  const rest = key.slice(at + 1 + job.length);
  return rest === '' || rest.startsWith('/');
}
