import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Redis } from 'ioredis';
import { transition, type FunctionRunner } from '../library/function-runner';
import type { Finding } from './findings';
import { keysBelow } from './key-scan';

const groupsScript = transition<{ job: string; groupIds: string[]; repair: boolean }, { findings: Finding[] }>(
  'audit/groups',
);
const recountScript = transition<
  { job: string; id: string; begins: boolean; requestIds: string[] },
  { goesOn: boolean }
>('audit/recount');
const mendCounts = transition<
  { job: string; id: string },
  { ended: false; mended: false } | { ended: true; mended: boolean; seen: Counts; found: Counts }
>('audit/mend-counts');
const markCounts = transition<{ jobs: string[]; generation: string; isLast: boolean }, { marked: number }>(
  'audit/mark-counts',
);

/** Requests by state. */
type Counts = Record<string, number>;
/** What the counts of a job were, and what a look at its requests has found. */
interface CountLook {
  counts: Counts;
  found: Counts;
  /** The two are of one moment. */
  isProven: boolean;
  mended: boolean;
}

/** States whose requests are kept one by one; the others may be folded into the books. */
const KEPT_STATES = ['pending', 'claimed', 'running', 'cutting', 'unfinished', 'finished'] as const;
const FOLDED_STATES = ['trained', 'failed', 'dropped'] as const;
/** Requests looked at in one script. */
const REQUESTS_PER_SCRIPT = 128;

/** What one look at the requests of all jobs of a pool found. */
export interface BooksLook {
  findings: Finding[];
  jobs: string[];
  requests: number;
  /** Jobs whose requests changed while they were counted: nothing can be said of their sums. */
  busyJobs: string[];
}

/**
 * Looks once at the books of all jobs of a pool: submitted = the sum of all states, each state as many requests as are
 * in it, the counters of each group, the queues.
 */
export class BooksAudit {
  constructor(
    private readonly redis: Redis,
    private readonly runner: FunctionRunner,
  ) {}

  /**
   * @param repair mends the counts by state, and what each group and its requests tell exactly
   */
  async look(pool: string, repair: boolean): Promise<BooksLook> {
    const root = this.runner.rootKey(pool);
    const look: BooksLook = { findings: [], jobs: [], requests: 0, busyJobs: [] };
    for (const job of (await this.redis.smembers(`${root}:jobs`)).sort()) await this.lookAtJob(pool, job, look, repair);
    return look;
  }

  /** Looks at one job and adds what it finds to `look`; `repair` as for {@link look}. */
  async lookAtJob(pool: string, job: string, look: BooksLook, repair: boolean): Promise<void> {
    const root = this.runner.rootKey(pool);
    look.jobs.push(job);
    const { counts, found, isProven, mended } = await (repair ? this.countAnew(pool, job) : this.compare(root, job));
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
    await this.groups(pool, root, job, look, repair);
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

  /** Sets the counts right while requests move: see the script `audit/recount`. */
  private async countAnew(pool: string, job: string): Promise<CountLook> {
    const root = this.runner.rootKey(pool);
    const id = randomUUID().slice(0, 8);
    const count = (requestIds: string[], begins = false) =>
      this.runner.run(recountScript, pool, { job, id, begins, requestIds });
    let { goesOn } = await count([], true);
    if (goesOn) {
      for await (const ids of this.requestsOf(root, job)) {
        for (let start = 0; goesOn && start < ids.length; start += REQUESTS_PER_SCRIPT) {
          ({ goesOn } = await count(ids.slice(start, start + REQUESTS_PER_SCRIPT)));
        }
        if (!goesOn) break;
      }
    }
    const end = goesOn ? await this.runner.run(mendCounts, pool, { job, id }) : { ended: false as const };
    if (end.ended) return { counts: end.seen, found: end.found, isProven: true, mended: end.mended };
    return { counts: {}, found: {}, isProven: false, mended: false };
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

  private async groups(pool: string, root: string, job: string, look: BooksLook, repair: boolean): Promise<void> {
    const prefix = `${root}:group:${job}/`;
    const seen = new Set<string>();
    let page: string[] = [];
    let requests = 0;
    const judge = async () => {
      if (page.length === 0) return;
      look.findings.push(...(await this.runner.run(groupsScript, pool, { job, groupIds: page, repair })).findings);
      page = [];
      requests = 0;
    };
    for await (const keys of keysBelow(this.redis, prefix)) {
      for (const key of keys) {
        const groupId = key.slice(prefix.length);
        if (seen.has(groupId)) continue;
        seen.add(groupId);
        page.push(groupId);
        requests += Number((await this.redis.hget(key, 'samples')) ?? 0);
        if (requests >= REQUESTS_PER_SCRIPT) await judge();
      }
    }
    await judge();
    // What stands in the queue without a group.
    const queue = this.redis.zscanStream(`${root}:job-longtail:${job}`, { count: 1_000 });
    const lost = new Set<string>();
    for await (const entries of queue as AsyncIterable<string[]>) {
      for (let at = 0; at < entries.length; at += 2) if (!seen.has(entries[at]!)) lost.add(entries[at]!);
    }
    for (const groupId of lost) {
      // Judged again: it may have come since the groups were listed.
      if (
        repair &&
        (await this.runner.run(groupsScript, pool, { job, groupIds: [groupId], repair })).findings.length > 0
      ) {
        const says = 'in the long-tail queue, but there was no such group';
        look.findings.push({ check: 'longtail-without-group', where: `${job}/${groupId}`, says, repaired: true });
        continue;
      }
      const says = 'in the long-tail queue, but there is no such group';
      look.findings.push({ check: 'longtail-without-group', where: `${job}/${groupId}`, says, repaired: false });
    }
  }
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
