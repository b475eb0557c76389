import type { Redis } from 'ioredis';
import { transition, type FunctionRunner } from '../library/function-runner';
import { digestOf, groupBy, type Finding, type Mend, type PackedLease } from './findings';
import { keysBelow } from './key-scan';

type Hash = { hash: 'serverTokens' | 'serverSessions' } | { hash: 'group'; groupId: string };

type Counter = Hash & { name: string };

/** With more leases or sessions, what seems off is not counted in one script, which would hold the others up. */
export const MOST_COUNTED_AT_ONCE = 750;
const COUNTERS_PER_SCRIPT = 128;
/** As in load.lua: what a lease has above this is written down. */
const TOKENS_OF_EVERY_LEASE = 256;

const counters = transition<Hash & { cursor: string }, { cursor: string; counters: [name: string, count: number][] }>(
  'audit/counters',
);
const recountCounters = transition<
  { counters: Counter[]; most: number; repair: boolean },
  { counted: boolean; counters: [there: number, found: number][] }
>('audit/recount-counters');
const mendCounter = transition<Counter & { counted: number; found: number }, { mended: boolean }>('audit/mend-counter');

/** What stands for one `serverId:epoch`. */
interface Expected {
  count: number;
  /** What it was made of, to be named in the finding. */
  leases: PackedLease[];
  sessions: number;
}

/**
 * The counters by server that the policies go by: context tokens, sessions, and the leases of each group. They are sums
 * over leases and bindings, so they are only wrong when a second look says the same of the same leases, and when one
 * script that counts everything says so too; in a pool with more than 10,000 leases or sessions the looks must do.
 */
export class CounterAudit {
  constructor(
    private readonly redis: Redis,
    private readonly runner: FunctionRunner,
  ) {}

  /** @param bindings packed, of all sessions */
  async look(pool: string, leases: readonly PackedLease[], bindings: readonly string[]): Promise<Mend[]> {
    const tokens = sums(leases, (lease) => Math.max(0, lease[8] - TOKENS_OF_EVERY_LEASE));
    const sessions = sums(leases, (lease) => (lease[6] === '' ? 0 : -1));
    for (const packed of bindings) {
      const [serverId, epoch] = packed.split('|');
      if (epoch === '') continue;
      const expected = entryOf(sessions, `${serverId}:${epoch}`);
      expected.count++;
      expected.sessions++;
    }
    const mends = [
      ...(await this.compare(pool, { hash: 'serverTokens' }, 'server-tokens', tokens)),
      ...(await this.compare(pool, { hash: 'serverSessions' }, 'server-sessions', sessions)),
    ];
    const byGroup = groupBy(leases, (lease) => lease[7]);
    for (const groupId of new Set([...byGroup.keys(), ...(await this.groups(pool))])) {
      if (groupId === '') continue;
      const expected = sums(byGroup.get(groupId) ?? [], () => 1);
      mends.push(...(await this.compare(pool, { hash: 'group', groupId }, 'group-leases', expected)));
    }
    return mends;
  }

  /** The findings without the counters that were only busy. */
  async withoutBusy(pool: string, findings: readonly Finding[]): Promise<Finding[]> {
    const seeming = findings.filter((finding) => counterOf(finding) !== undefined);
    const busy = new Set<Finding>();
    for (let from = 0; from < seeming.length; from += COUNTERS_PER_SCRIPT) {
      const page = seeming.slice(from, from + COUNTERS_PER_SCRIPT);
      const { counted, counters } = await this.recount(
        pool,
        page.map((finding) => counterOf(finding)!),
        false,
      );
      if (!counted) break;
      page.forEach((finding, index) => {
        if (counters[index]![0] === counters[index]![1]) busy.add(finding);
      });
    }
    return findings.filter((finding) => !busy.has(finding));
  }

  private recount(pool: string, counters: Counter[], repair: boolean) {
    return this.runner.run(recountCounters, pool, { counters, most: MOST_COUNTED_AT_ONCE, repair });
  }

  private async groups(pool: string): Promise<string[]> {
    const prefix = `${this.runner.rootKey(pool)}:group-leases:`;
    const ids: string[] = [];
    for await (const keys of keysBelow(this.redis, prefix)) ids.push(...keys.map((key) => key.slice(prefix.length)));
    return ids;
  }

  private async compare(pool: string, hash: Hash, check: string, expected: Map<string, Expected>): Promise<Mend[]> {
    const counted = new Map<string, number>();
    for (let cursor: string | undefined; cursor !== '0';) {
      const page = await this.runner.run(counters, pool, { ...hash, cursor: cursor ?? '0' });
      for (const [name, count] of page.counters) counted.set(name, count);
      cursor = page.cursor;
    }
    const mends: Mend[] = [];
    for (const name of new Set([...counted.keys(), ...expected.keys()])) {
      const { count: found, leases, sessions } = expected.get(name) ?? { count: 0, leases: [], sessions: 0 };
      const was = counted.get(name) ?? 0;
      if (was === found) continue;
      const where = 'groupId' in hash ? `${hash.groupId} on ${name}` : name;
      const says = `${was}, but ${leases.length} leases (${digestOf(leases)}) and ${sessions} sessions give ${found}`;
      const counter = { ...hash, name };
      mends.push({
        finding: { check, where, says, repaired: false },
        mend: async () => {
          const { counted, counters } = await this.recount(pool, [counter], true);
          if (counted) return { mended: counters[0]![0] !== counters[0]![1] };
          return this.runner.run(mendCounter, pool, { ...counter, counted: was, found });
        },
      });
    }
    return mends;
  }
}

/** The counter a finding is about. */
function counterOf({ check, where }: Finding): Counter | undefined {
  if (check === 'server-tokens') return { hash: 'serverTokens', name: where };
  if (check === 'server-sessions') return { hash: 'serverSessions', name: where };
  if (check !== 'group-leases') return undefined;
  const [groupId, name] = where.split(' on ') as [string, string]; // no id holds a space
  return { hash: 'group', groupId, name };
}

function sums(leases: readonly PackedLease[], amountOf: (lease: PackedLease) => number): Map<string, Expected> {
  const byServer = new Map<string, Expected>();
  for (const lease of leases) {
    const expected = entryOf(byServer, `${lease[2]}:${lease[3]}`);
    expected.count += amountOf(lease);
    expected.leases.push(lease);
  }
  return byServer;
}

function entryOf(byServer: Map<string, Expected>, name: string): Expected {
  let expected = byServer.get(name);
  if (!expected) byServer.set(name, (expected = { count: 0, leases: [], sessions: 0 }));
  return expected;
}
