import { isDeepStrictEqual } from 'node:util';
import type { Redis } from 'ioredis';
import { script, type ScriptRunner } from '../scripts/script-runner';
import type { Finding } from './findings';
import { keysBelow } from './key-scan';

const groupsScript = script<{ job: string; groupIds: string[]; repair: boolean }, { findings: Finding[] }>(
  'audit/groups',
);
const mendCounts = script<
  { job: string; seen: Record<string, string>; sequence: string; found: Record<string, number> },
  { standing: boolean; mended: boolean }
>('audit/mend-counts');

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
    private readonly runner: ScriptRunner,
  ) {}

  /**
   * @param repair mends what each group and its requests tell exactly; the counts by state only when nothing has moved
   *   while the requests were counted
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
    const before = await this.countsOf(root, job);
    const found = await this.recount(root, job);
    const { counts, sequence } = before;
    look.requests += Object.values(found).reduce((sum, count) => sum + count, 0);
    const { standing, mended } = repair
      ? await this.runner.run(mendCounts, pool, { job, seen: counts, sequence, found })
      : { standing: isDeepStrictEqual(before, await this.countsOf(root, job)), mended: false };
    const balance = imbalanceOf(counts);
    if (balance) look.findings.push({ check: 'books-balance', where: job, says: balance, repaired: mended });
    if (!standing) look.busyJobs.push(job);
    for (const state of standing ? KEPT_STATES : []) {
      const [booked, there] = [Number(counts[state] ?? 0), found[state] ?? 0];
      if (booked === there) continue;
      const says = `${state}: ${booked} in the books, ${there} found`;
      look.findings.push({ check: 'books-recount', where: job, says, repaired: mended });
    }
    await this.groups(pool, root, job, look, repair);
  }

  /** No request can be counted twice or not at all while both stay as they are: see the script `audit/mend-counts`. */
  private async countsOf(root: string, job: string): Promise<{ counts: Record<string, string>; sequence: string }> {
    const counts = await this.redis.hgetall(`${root}:job-books:${job}`);
    return { counts: { ...counts }, sequence: (await this.redis.hget(`${root}:meta`, 'pendingSequence')) ?? '' };
  }

  /** Requests by state. */
  private async recount(root: string, job: string): Promise<Record<string, number>> {
    const counted: Record<string, number> = {};
    const seen = new Set<string>();
    for await (const keys of keysBelow(this.redis, `${root}:request:${job}/`)) {
      const fresh = keys.filter((key) => !seen.has(key));
      const pipeline = this.redis.pipeline();
      for (const key of fresh) {
        seen.add(key);
        pipeline.hget(key, 'state');
      }
      for (const [error, state] of (await pipeline.exec()) ?? []) {
        if (error) throw error;
        if (typeof state === 'string') counted[state] = (counted[state] ?? 0) + 1;
      }
    }
    return counted;
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
function imbalanceOf(books: Record<string, string>): string | undefined {
  const states = [...KEPT_STATES, ...FOLDED_STATES].map((state) => Number(books[state] ?? 0));
  const sum = states.reduce((total, count) => total + count, 0);
  const submitted = Number(books.submitted ?? 0);
  if (sum === submitted && states.every((count) => count >= 0)) return undefined;
  return `submitted ${submitted}, sum of states ${sum}: ${JSON.stringify(sorted(books))}`;
}

function sorted(books: Record<string, string>): [string, string][] {
  return Object.entries(books).sort(([one], [other]) => (one < other ? -1 : 1));
}
