import { isDeepStrictEqual } from 'node:util';
import type { Redis } from 'ioredis';
import { answerOf } from '../redis';
import { transition, type FunctionRunner } from '../library/function-runner';
import type { Finding } from './findings';
import { JobRecounts, type CountLook, type Counts } from './job-recounts';
import { keysBelow } from './key-scan';

const groupsScript = transition<{ job: string; groupIds: string[]; repair: boolean }, { findings: Finding[] }>(
  'audit/groups',
);
const markCounts = transition<{ jobs: string[]; generation: string; isLast: boolean }, { marked: number }>(
  'audit/mark-counts',
);

/** States whose requests are kept one by one; the others may be folded into the books. */
const KEPT_STATES = ['pending', 'claimed', 'running', 'cutting', 'unfinished', 'finished'] as const;
const FOLDED_STATES = ['trained', 'failed', 'dropped'] as const;
/** Jobs that are counted anew at once. */
const MARKED_JOBS = 64;
/** Requests looked at in one script. */
const REQUESTS_PER_SCRIPT = 128;

/** What one look at the requests of all jobs of a pool found. */
export interface BooksLook {
  findings: Finding[];
  jobs: string[];
  requests: number;
  /** Jobs whose requests changed while they were counted: nothing can be said of their sums. */
  busyJobs: string[];
  /** Recounts that were begun and are to be ended, by job. */
  recounts: Map<string, string>;
}

/**
 * Looks once at the books of all jobs of a pool: submitted = the sum of all states, each state as many requests as are
 * in it, the counters of each group, the queues.
 */
export class BooksAudit {
  readonly recounts: JobRecounts;

  constructor(
    private readonly redis: Redis,
    private readonly runner: FunctionRunner,
  ) {
    this.recounts = new JobRecounts(redis, runner);
  }

  /**
   * @param repair mends the counts by state, and what each group and its requests tell exactly
   */
  async look(pool: string, repair: boolean): Promise<BooksLook> {
    const root = this.runner.rootKey(pool);
    const jobs = (await this.redis.smembers(`${root}:jobs`)).sort();
    if (repair) return this.repair(pool, jobs);
    const look = emptyLook(jobs);
    for (const job of jobs) {
      this.judge(job, await this.compare(root, job), look);
      await this.groups(pool, [job], look, false);
    }
    return look;
  }

  /** Counts these jobs anew, all in one look at the keys of the pool, and mends what is off. */
  async repair(pool: string, jobs: readonly string[]): Promise<BooksLook> {
    const look = emptyLook(jobs);
    // First what ends groups, which changes the counts.
    await this.groups(pool, jobs, look, true);
    const { counted, ids } = await this.recounts.count(pool, jobs);
    for (const [job, counts] of counted) this.judge(job, counts, look);
    look.recounts = ids;
    return look;
  }

  private judge(job: string, { counts, found, isProven, mended }: CountLook, look: BooksLook): void {
    look.requests += Object.values(found).reduce((sum, count) => sum + count, 0);
    const balance = imbalanceOf(counts);
    if (balance) look.findings.push({ check: 'books-balance', where: job, says: balance, repaired: mended });
    if (!isProven) look.busyJobs.push(job);
    for (const state of isProven ? KEPT_STATES : []) {
      const [booked, there] = [counts[state] ?? 0, found[state] ?? 0];
      if (booked === there) continue;
      const says = `${state}: ${booked} in the books, ${there} found`;
      look.findings.push({ check: 'books-recount', where: job, says, repaired: mended });
    }
  }

  /** Jobs that are marked, some of them. */
  marked(pool: string): Promise<string[]> {
    return answerOf(this.redis.srandmember(`${this.runner.rootKey(pool)}:jobs:miscounted`, MARKED_JOBS));
  }

  /** Marks the jobs whose counts may be off since Redis has lost something. @param generation that began with it */
  async mark(pool: string, generation: string): Promise<void> {
    const jobs = await this.redis.smembers(`${this.runner.rootKey(pool)}:jobs`);
    for (let start = 0; start === 0 || start < jobs.length; start += REQUESTS_PER_SCRIPT) {
      const page = jobs.slice(start, start + REQUESTS_PER_SCRIPT);
      await this.runner.run(markCounts, pool, { jobs: page, generation, isLast: start + page.length >= jobs.length });
    }
  }

  /** Says nothing about the sums of a job whose requests move. */
  private async compare(root: string, job: string): Promise<CountLook> {
    const before = await this.countsOf(root, job);
    const found: Counts = {};
    for await (const ids of this.requestsOf(root, job)) {
      const pipeline = this.redis.pipeline();
      for (const id of ids) pipeline.hget(`${root}:request:${id}`, 'state');
      for (const [error, state] of (await pipeline.exec()) ?? []) {
        if (error) throw error;
        if (typeof state === 'string') found[state] = (found[state] ?? 0) + 1;
      }
    }
    const isProven = isDeepStrictEqual(before, await this.countsOf(root, job));
    return { counts: before.counts, found, isProven, mended: false };
  }

  /** No request can be counted twice or not at all while both stay as they are. */
  private async countsOf(root: string, job: string): Promise<{ counts: Counts; sequence: string }> {
    const counts = Object.entries(await this.redis.hgetall(`${root}:job-books:${job}`));
    const sequence = (await this.redis.hget(`${root}:meta`, 'pendingSequence')) ?? '';
    return { counts: Object.fromEntries(counts.map(([state, count]) => [state, Number(count)])), sequence };
  }

  /** Each at most once. */
  private async *requestsOf(root: string, job: string): AsyncGenerator<string[]> {
    const seen = new Set<string>();
    for await (const keys of keysBelow(this.redis, `${root}:request:${job}/`)) {
      const fresh = keys.filter((key) => !seen.has(key));
      for (const key of fresh) seen.add(key);
      yield fresh.map((key) => key.slice(`${root}:request:`.length));
    }
  }

  /** Looks at all groups of these jobs, at once. */
  private async groups(pool: string, jobs: readonly string[], look: BooksLook, repair: boolean): Promise<void> {
    const root = this.runner.rootKey(pool);
    const pages = new Map(jobs.map((job) => [job, { groupIds: [] as string[], requests: 0 }]));
    const seen = new Set<string>();
    const judge = async (job: string) => {
      const { groupIds } = pages.get(job)!;
      pages.set(job, { groupIds: [], requests: 0 });
      if (groupIds.length === 0) return;
      look.findings.push(...(await this.runner.run(groupsScript, pool, { job, groupIds, repair })).findings);
    };
    const all = `${root}:group:`;
    for await (const keys of keysBelow(this.redis, jobs.length === 1 ? `${all}${jobs[0]}/` : all)) {
      for (const key of keys) {
        const [job, groupId] = key.slice(all.length).split('/') as [string, string];
        const page = pages.get(job);
        if (page === undefined || seen.has(key)) continue;
        seen.add(key);
        page.groupIds.push(groupId);
        page.requests += Number((await this.redis.hget(key, 'samples')) ?? 0);
        if (page.requests >= REQUESTS_PER_SCRIPT) await judge(job);
      }
    }
    for (const job of jobs) {
      await judge(job);
      await this.queue(pool, job, (groupId) => seen.has(`${all}${job}/${groupId}`), look, repair);
    }
  }

  /** What stands in the long-tail queue without a group. */
  private async queue(
    pool: string,
    job: string,
    isThere: (groupId: string) => boolean,
    look: BooksLook,
    repair: boolean,
  ): Promise<void> {
    const queue = this.redis.zscanStream(`${this.runner.rootKey(pool)}:job-longtail:${job}`, { count: 1_000 });
    const lost = new Set<string>();
    for await (const entries of queue as AsyncIterable<string[]>) {
      for (let at = 0; at < entries.length; at += 2) if (!isThere(entries[at]!)) lost.add(entries[at]!);
    }
    for (const groupId of lost) {
      // Judged again: it may have come since the groups were listed.
      const repaired =
        repair && (await this.runner.run(groupsScript, pool, { job, groupIds: [groupId], repair })).findings.length > 0;
      const says = `in the long-tail queue, but there ${repaired ? 'was' : 'is'} no such group`;
      look.findings.push({ check: 'longtail-without-group', where: `${job}/${groupId}`, says, repaired });
    }
  }
}

function emptyLook(jobs: readonly string[]): BooksLook {
  return { findings: [], jobs: [...jobs], requests: 0, busyJobs: [], recounts: new Map() };
}

/** What does not add up, or undefined. */
function imbalanceOf(books: Counts): string | undefined {
  const states = [...KEPT_STATES, ...FOLDED_STATES].map((state) => books[state] ?? 0);
  const sum = states.reduce((total, count) => total + count, 0);
  const submitted = books.submitted ?? 0;
  if (sum === submitted && states.every((count) => count >= 0)) return undefined;
  return `submitted ${submitted}, sum of states ${sum}: ${JSON.stringify(sorted(books))}`;
}

function sorted(books: Counts): [string, number][] {
  return Object.entries(books).sort(([one], [other]) => (one < other ? -1 : 1));
}
