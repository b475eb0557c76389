import type { Epoch } from '@broomwagon/contracts';
import type { Redis } from 'ioredis';
import { transition, type FunctionRunner } from '../library/function-runner';
import { CounterAudit, MOST_COUNTED_AT_ONCE } from './counter-audit';
import { digestOf, groupBy, type Finding, type Mend, type PackedLease } from './findings';
import { keysBelow } from './key-scan';

interface Page {
  cursor: string;
  findings: Finding[];
}
const SESSIONS_PER_SCRIPT = 128;

interface PageArgs {
  cursor: string;
  repair: boolean;
}

const SERVER_INDEXES = [
  'servers',
  'eligible',
  'usableServers',
  'watchedServers',
  'drainingServers',
  'warmingServers',
  'serverTraits',
] as const;

const SCRIPTS = {
  leases: transition<PageArgs, Page & { leases: PackedLease[] }>('audit/leases'),
  leaseIndex: transition<PageArgs & { kind: string; id: string; epoch: string }, Page>('audit/lease-index'),
  requestLeases: transition<PageArgs & { requestId?: string }, Page>('audit/request-leases'),
  servers: transition<PageArgs & { index: string }, Page & { loads: [string, number, number][] }>('audit/servers'),
  cards: transition<PageArgs, Page>('audit/cards'),
  sessions: transition<PageArgs, Page & { sessions: [string, string, number][] }>('audit/sessions'),
  workers: transition<{ cursor: string }, Page & { workers: [string, Epoch, number, string][] }>('audit/workers'),
  waiters: transition<PageArgs & { lane?: string; deadlines?: boolean }, Page>('audit/waiters'),
  mendSession: transition<{ sessionId: string; packed: string; leases: number }, { mended: boolean }>(
    'audit/mend-session',
  ),
  countSessions: transition<
    { sessionIds: string[]; mostLeases: number },
    { counted: boolean; counts: [packed: string, leases: number][] }
  >('audit/count-sessions'),
  mendDigest: transition<{ workerId: string; workerEpoch: Epoch; digest: string; sum: string }, { mended: boolean }>(
    'audit/mend-digest',
  ),
};

/** How much there is. */
export interface RoutingCounts {
  servers: number;
  leases: number;
  sessions: number;
  workers: number;
  /** Leases of all current server epochs, as their sets have it. */
  serverLoads: number;
  /** Leases of all live worker epochs, as their sets have it. */
  workerLoads: number;
}

/** What one look at the routing state of a pool found. */
export interface RoutingLook {
  findings: Finding[];
  counts: RoutingCounts;
  mends: Mend[];
}

/**
 * Looks once at everything the load-balancer keeps of a pool: leases, their sets by server and worker and their lists by
 * request, servers, their indexes and cards, sessions, worker digests, waiters. Each entry is judged within one script;
 * sums over entries are not, so they say what they were made of and are only wrong when a second look says the same.
 */
export class RoutingAudit {
  private readonly counters: CounterAudit;

  constructor(
    private readonly redis: Redis,
    private readonly runner: FunctionRunner,
  ) {
    this.counters = new CounterAudit(redis, runner);
  }

  /** @param repair mends indexes from the leases, entry by entry; sums are in `mends` */
  async look(pool: string, repair: boolean): Promise<RoutingLook> {
    const findings: Finding[] = [];
    const leases = new Map<string, PackedLease>();
    await this.pages(findings, async (cursor) => {
      const page = await this.runner.run(SCRIPTS.leases, pool, { cursor, repair });
      for (const lease of page.leases) leases.set(lease[0], lease);
      return page;
    });
    await this.leaseIndexes(pool, repair, findings);
    await this.requestLeases(pool, repair, findings);
    const loads = await this.servers(pool, repair, findings);
    await this.pages(findings, (cursor) => this.runner.run(SCRIPTS.cards, pool, { cursor, repair }));
    const bySession = groupBy(leases.values(), (lease) => lease[6]);
    const byWorker = groupBy(leases.values(), (lease) => `${lease[4]}:${lease[5]}`);
    const sessions = await this.sessions(pool, repair, findings, bySession);
    const workers = await this.workers(pool, findings, byWorker);
    await this.waiters(pool, repair, findings);
    const counters = await this.counters.look(pool, [...leases.values()], sessions.bindings);
    const mends = [...sessions.mends, ...workers.mends, ...counters];
    return {
      findings: [...findings, ...mends.map(({ finding }) => finding)],
      mends,
      counts: {
        servers: loads.size,
        leases: leases.size,
        sessions: sessions.count,
        workers: workers.count,
        serverLoads: [...loads.values()].reduce((sum, load) => sum + load, 0),
        workerLoads: workers.load,
      },
    };
  }

  /**
   * The findings without the sums that were only busy: two looks can get them wrong in the same way. Counted again in
   * one script; in a pool with more than 10,000 leases the looks must do.
   */
  async withoutBusy(pool: string, findings: Finding[]): Promise<Finding[]> {
    return this.counters.withoutBusy(pool, await this.withoutBusySessions(pool, findings));
  }

  private async withoutBusySessions(pool: string, findings: Finding[]): Promise<Finding[]> {
    const seeming = findings.filter(({ check }) => check === 'session-lease-count');
    const busy = new Set<Finding>();
    for (let from = 0; from < seeming.length; from += SESSIONS_PER_SCRIPT) {
      const page = seeming.slice(from, from + SESSIONS_PER_SCRIPT);
      const sessionIds = page.map(({ where }) => where);
      const args = { sessionIds, mostLeases: MOST_COUNTED_AT_ONCE };
      const { counted, counts } = await this.runner.run(SCRIPTS.countSessions, pool, args);
      if (!counted) break;
      page.forEach((finding, index) => {
        const [packed, leases] = counts[index]!;
        if (packed === '' || Number(packed.split('|')[2]) === leases) busy.add(finding);
      });
    }
    return findings.filter((finding) => !busy.has(finding));
  }

  private async pages(findings: Finding[], next: (cursor: string) => Promise<Page>): Promise<void> {
    let cursor = '0';
    do {
      const page = await next(cursor);
      findings.push(...page.findings);
      cursor = page.cursor;
    } while (cursor !== '0');
  }

  private async requestLeases(pool: string, repair: boolean, findings: Finding[]): Promise<void> {
    const look = (more: { requestId?: string }) =>
      this.pages(findings, (cursor) => this.runner.run(SCRIPTS.requestLeases, pool, { ...more, cursor, repair }));
    await look({});
    const prefix = `${this.runner.rootKey(pool)}:request-leases:`;
    for await (const keys of keysBelow(this.redis, prefix)) {
      for (const key of keys) await look({ requestId: key.slice(prefix.length) });
    }
  }

  private async leaseIndexes(pool: string, repair: boolean, findings: Finding[]): Promise<void> {
    for (const kind of ['server', 'worker'] as const) {
      const prefix = `${this.runner.rootKey(pool)}:${kind}-leases:`;
      for await (const keys of keysBelow(this.redis, prefix)) {
        for (const key of keys) {
          const name = key.slice(prefix.length);
          const [id, epoch] = [name.slice(0, name.lastIndexOf(':')), name.slice(name.lastIndexOf(':') + 1)];
          await this.pages(findings, (cursor) =>
            this.runner.run(SCRIPTS.leaseIndex, pool, { kind, id, epoch, cursor, repair }),
          );
        }
      }
    }
  }

  private async servers(pool: string, repair: boolean, findings: Finding[]): Promise<Map<string, number>> {
    const loads = new Map<string, number>();
    for (const index of SERVER_INDEXES) {
      await this.pages(findings, async (cursor) => {
        const page = await this.runner.run(SCRIPTS.servers, pool, { index, cursor, repair });
        for (const [serverId, , load] of page.loads) loads.set(serverId, load);
        return page;
      });
    }
    return loads;
  }

  private async sessions(pool: string, repair: boolean, findings: Finding[], leases: Map<string, PackedLease[]>) {
    const mends: Mend[] = [];
    const seen = new Set<string>();
    const bindings: string[] = [];
    await this.pages(findings, async (cursor) => {
      const page = await this.runner.run(SCRIPTS.sessions, pool, { cursor, repair });
      for (const [sessionId, packed, counted] of page.sessions) {
        if (seen.has(sessionId)) continue;
        seen.add(sessionId);
        bindings.push(packed);
        const own = leases.get(sessionId) ?? [];
        if (own.length === counted) continue;
        const says = `${counted} leases in ${packed}, ${own.length} found (${digestOf(own)})`;
        const finding = { check: 'session-lease-count', where: sessionId, says, repaired: false };
        const found = { sessionId, packed, leases: own.length };
        mends.push({ finding, mend: () => this.runner.run(SCRIPTS.mendSession, pool, found) });
      }
      return page;
    });
    return { mends, count: seen.size, bindings };
  }

  private async workers(pool: string, findings: Finding[], leases: Map<string, PackedLease[]>) {
    const mends: Mend[] = [];
    const loads = new Map<string, number>();
    await this.pages(findings, async (cursor) => {
      const page = await this.runner.run(SCRIPTS.workers, pool, { cursor });
      for (const [workerId, workerEpoch, load, digest] of page.workers) {
        if (loads.has(workerId)) continue;
        loads.set(workerId, load);
        const own = leases.get(`${workerId}:${workerEpoch}`) ?? [];
        const sum = own.reduce((total, lease) => total + BigInt(lease[1]), 0n).toString();
        if (sum === digest) continue;
        const finding = {
          check: 'worker-digest',
          where: `${workerId}:${workerEpoch}`,
          says: `${digest}, but its ${own.length} leases give ${sum}`,
          repaired: false,
        };
        const found = { workerId, workerEpoch, digest, sum };
        mends.push({ finding, mend: () => this.runner.run(SCRIPTS.mendDigest, pool, found) });
      }
      return page;
    });
    return { mends, count: loads.size, load: [...loads.values()].reduce((sum, load) => sum + load, 0) };
  }

  private async waiters(pool: string, repair: boolean, findings: Finding[]): Promise<void> {
    const look = (more: { lane?: string; deadlines?: boolean }) =>
      this.pages(findings, (cursor) => this.runner.run(SCRIPTS.waiters, pool, { ...more, cursor, repair }));
    await look({});
    await look({ deadlines: true });
    const prefix = `${this.runner.rootKey(pool)}:waiters:lane:`;
    for await (const keys of keysBelow(this.redis, prefix)) {
      for (const key of keys) await look({ lane: key.slice(prefix.length) });
    }
  }
}
