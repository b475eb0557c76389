import { randomUUID } from 'node:crypto';
import type { RedisClient } from '../redis-cluster';
import { transition, type FunctionRunner } from '../library/function-runner';
import { keysBelow } from './key-scan';

const recount = transition<{ job: string; id: string; begins: boolean; requestIds: string[] }, { goesOn: boolean }>(
  'audit/recount',
);
const mendCounts = transition<
  { job: string; id: string },
  { goesOn: false; mended: false } | { goesOn: true; mended: boolean; seen: Counts; found: Counts }
>('audit/mend-counts');
const endRecount = transition<{ job: string; id: string }, { ended: boolean }>('audit/end-recount');
const markCounts = transition<{ jobs: string[]; generation: string; isLast: boolean }, { marked: number }>(
  'audit/mark-counts',
);

/** Maximum requests or jobs in one call of a transition. */
const PAGE = 128;
/** Interval of the calls that keep a recount: Redis forgets a recount after a minute without a call. */
const KEEP_ALIVE_MS = 10_000;

/** Requests by state. */
export type Counts = Record<string, number>;

/** Stored counts of a job, and the counts found by a scan of its requests. */
export interface CountLook {
  counts: Counts;
  found: Counts;
  /** Both counts are of one moment. */
  isProven: boolean;
  mended: boolean;
}

export interface Recount {
  counted: Map<string, CountLook>;
  /**
   * Ends the recount of a job when all of the job is checked. False: the job stays marked and must be counted again,
   * for example because another recount is under way, or this recount was given up.
   */
  end(job: string): Promise<boolean>;
}

/** Sets the counts of jobs right while their requests move: see the transition `audit/recount`. */
export class JobRecounts {
  private keptAtMs = 0;

  constructor(
    private readonly redis: RedisClient,
    private readonly runner: FunctionRunner,
  ) {}

  /** Counts the requests of all these jobs in one scan of the keys of the pool. */
  async count(pool: string, jobs: readonly string[]): Promise<Recount> {
    const ids = new Map<string, string>();
    const page = async (job: string, requestIds: string[], begins = false) => {
      const id = ids.get(job)!;
      if (!(await this.runner.run(recount, pool, { job, id, begins, requestIds })).goesOn) ids.delete(job);
    };
    for (const job of jobs) {
      ids.set(job, randomUUID().slice(0, 8));
      await page(job, [], true);
    }
    const prefix = `${this.runner.rootKey(pool)}:request:`;
    const found = new Map<string, string[]>();
    // A key may be in several pages; the transition counts each request once.
    for await (const keys of keysBelow(this.redis, jobs.length === 1 ? `${prefix}${jobs[0]}/` : prefix)) {
      for (const key of keys) {
        const requestId = key.slice(prefix.length);
        const job = requestId.slice(0, requestId.indexOf('/'));
        if (!ids.has(job)) continue;
        const requestIds = found.get(job) ?? [];
        requestIds.push(requestId);
        found.set(job, requestIds);
        if (requestIds.length < PAGE) continue;
        found.delete(job);
        await page(job, requestIds);
      }
      await this.keepAlive(pool, ids);
    }
    for (const [job, requestIds] of found) if (ids.has(job)) await page(job, requestIds);

    const counted = new Map<string, CountLook>();
    for (const job of jobs) {
      const id = ids.get(job);
      const end = id === undefined ? undefined : await this.runner.run(mendCounts, pool, { job, id });
      if (end?.goesOn) {
        counted.set(job, { counts: end.seen, found: end.found, isProven: true, mended: end.mended });
      } else {
        ids.delete(job);
        counted.set(job, { counts: {}, found: {}, isProven: false, mended: false });
      }
    }
    const end = async (job: string) => {
      const id = ids.get(job);
      return id !== undefined && (await this.runner.run(endRecount, pool, { job, id })).ended;
    };
    return { counted, end };
  }

  /** Keeps recounts alive. */
  private async keepAlive(pool: string, ids: ReadonlyMap<string, string>): Promise<void> {
    if (performance.now() - this.keptAtMs < KEEP_ALIVE_MS) return;
    this.keptAtMs = performance.now();
    for (const [job, id] of ids) await this.runner.run(recount, pool, { job, id, begins: false, requestIds: [] });
  }

  /**
   * Marks the jobs whose counts may be off because Redis has lost writes.
   * @param generation generation of the pool that started with the loss
   */
  async mark(pool: string, generation: string): Promise<void> {
    const jobs = await this.redis.smembers(`${this.runner.rootKey(pool)}:jobs`);
    for (let start = 0; start === 0 || start < jobs.length; start += PAGE) {
      const page = jobs.slice(start, start + PAGE);
      await this.runner.run(markCounts, pool, { jobs: page, generation, isLast: start + page.length >= jobs.length });
    }
  }
}
