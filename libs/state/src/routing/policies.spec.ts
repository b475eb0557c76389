import { chooseServer, clockwise, replayDecision, turnAfter } from '@broomwagon/policies';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ScriptRunner } from '../scripts/script-runner';
import { PoolStore } from './pool.store';
import { openTestStore } from './routing-store.fixture';
import { ServerStore } from './server.store';
import type { AcquireEntry, Granted } from './routing.types';
import type { PoolSettings } from '@broomwagon/contracts';

let test: ReturnType<typeof openTestStore>;
let pools: PoolStore;
let servers: ServerStore;
let worker: { workerId: string; workerEpoch: number };

async function open() {
  test = openTestStore();
  const runner = new ScriptRunner(test.redis, test.root.split(':{')[0]!);
  pools = new PoolStore(runner);
  servers = new ServerStore(runner);
  worker = await test.worker('w');
}
beforeEach(open);
afterEach(() => test.close());

/** As `pool.configure` does it. */
async function configure(set: PoolSettings, reset: string[] = []) {
  const { version } = await pools.configure(test.pool, set, reset);
  for (let cursor = ''; cursor !== '0';) ({ cursor } = await servers.rescore(test.pool, cursor || '0'));
  return pools.finish(test.pool, version);
}
const acquire = async (wish: Partial<AcquireEntry> = {}) =>
  (await test.acquire(worker, wish)) as unknown as Granted & { acquireId: string; error?: string };
async function placesOf(count: number, wish: (n: number) => Partial<AcquireEntry> = () => ({})) {
  const places: string[] = [];
  for (let n = 0; n < count; n++) places.push((await acquire(wish(n))).serverId);
  return places;
}

describe('settings of a pool', () => {
  it('change as a whole, are kept with a version that grows with each change, and a repeat changes nothing', async () => {
    expect(await pools.settings(test.pool)).toMatchObject({ version: 0, settings: {}, policy: 'least-inflight' });
    const first = await configure({ policy: 'round-robin', affinityBreakMargin: 2, groupSpreadAboveKvUse: 0.5 });
    expect(first).toMatchObject({ version: 1, policy: 'round-robin', isScored: true });
    expect(first.settings).toEqual({ policy: 'round-robin', affinityBreakMargin: 2, groupSpreadAboveKvUse: 0.5 });
    expect((await configure({ affinityBreakMargin: 2 })).version).toBe(1);
    const second = await configure({ affinityBreakMargin: 0 }, ['policy', 'groupSpreadAboveKvUse']);
    expect(second).toMatchObject({ version: 2, policy: 'least-inflight' });
    expect(second.settings).toMatchObject({ affinityBreakMargin: 0 });
    expect((await acquire()).error).toBe('NO_SERVER_AVAILABLE');
  });

  it('let the policy in force decide until all of 300 servers are scored for the other, then that one at once', async () => {
    await Promise.all(Array.from({ length: 300 }, (_, n) => test.server(`server-${n}`)));
    await placesOf(3);
    const { version, nextPolicy } = await pools.configure(test.pool, { policy: 'round-robin' });
    expect(nextPolicy).toBe('round-robin');
    let { cursor } = await servers.rescore(test.pool, '0');
    expect(cursor).not.toBe('0');
    expect(await acquire()).toMatchObject({ policy: 'least-inflight', branch: 'tie', key: 0 });
    // Meanwhile the settings change again: this pass is not enough to end with.
    await pools.configure(test.pool, { affinityBreakMargin: 5 });
    while (cursor !== '0') ({ cursor } = await servers.rescore(test.pool, cursor));
    expect(await pools.finish(test.pool, version)).toMatchObject({ nextPolicy: 'round-robin', isScored: false });
    expect(await configure({})).toMatchObject({ policy: 'round-robin', version: 2 });
    expect(await acquire()).toMatchObject({ policy: 'round-robin', branch: 'round-robin', eligible: 300 });
    expect(await test.redis.exists(`${test.root}:eligible:next`)).toBe(0);
  });
});

describe('policies', () => {
  it('least-tokens: the server with the fewest context and uncached tokens', async () => {
    await test.server('a');
    await test.server('b');
    await configure({ policy: 'least-tokens' });
    const long = await acquire({ contextTokens: 100_000 });
    expect(new Set(await placesOf(5, () => ({ contextTokens: 1_000 })))).toEqual(
      new Set([long.serverId === 'a' ? 'b' : 'a']),
    );
    await test.release(long.acquireId);
    expect((await acquire()).serverId).toBe(long.serverId);
    const { servers: list } = await test.store.listServers(test.pool, '0');
    const epoch = list.find(({ serverId }) => serverId === long.serverId)!.epoch;
    const report = { serverId: long.serverId, epoch, running: 1, waiting: 0, uncachedTokens: 50_000 };
    await servers.reportLoads(test.pool, [report]);
    expect((await acquire()).serverId).not.toBe(long.serverId);
  });

  it('least-sessions: a new session goes to the server with the fewest active ones, whatever their leases', async () => {
    await test.server('a');
    await test.server('b');
    await configure({ policy: 'least-sessions' });
    const first = await acquire({ sessionId: 's1' });
    for (let turn = 0; turn < 5; turn++) await acquire({ sessionId: 's1' });
    const second = await acquire({ sessionId: 's2' });
    expect(second.serverId).not.toBe(first.serverId);
    await acquire({ sessionId: 's3' });
    await acquire({ sessionId: 's4' });
    // Finished ones are active no more.
    await test.release(second.acquireId);
    expect(await test.store.finishSession(test.pool, 's2')).toEqual({ finished: true });
    expect(await acquire({ sessionId: 's5' })).toMatchObject({ serverId: second.serverId, key: 1 });
  });

  it('round-robin: in turn, twice as often by weight 2, whatever the leases; a new server joins at the turn in hand', async () => {
    await test.server('a', 1_000, { weight: 2 });
    await test.server('b', 1_000);
    await configure({ policy: 'round-robin' });
    const places = await placesOf(300);
    expect(places.filter((id) => id === 'a').length).toBe(200);
    await test.server('c', 1_000);
    const later = await placesOf(40);
    expect(later.filter((id) => id === 'c').length).toBeGreaterThanOrEqual(9);
    expect(later.filter((id) => id === 'c').length).toBeLessThanOrEqual(11);
    expect(turnAfter(0, 2)).toBe(2_048);
  });

  it('round-robin: of equal turns the one chosen longest ago, whatever its id', async () => {
    await test.server('a');
    await test.server('b');
    await configure({ policy: 'round-robin' });
    // The session brings b its second turn before a has had it.
    const wishes = [{}, { sessionId: 's' }, { sessionId: 's' }, {}, {}];
    expect(await placesOf(5, (n) => wishes[n]!)).toEqual(['a', 'b', 'b', 'a', 'b']);
  });

  it('consistent-hash: the same choice on a fresh start in any order of registration, and the next one when full', async () => {
    await configure({ policy: 'consistent-hash' });
    const ids = Array.from({ length: 40 }, (_, n) => ({ requestId: `job/g${n}/0` }));
    for (const id of ['a', 'b', 'c', 'd']) await test.server(id);
    const first = await placesOf(40, (n) => ids[n]!);
    expect(new Set(first).size).toBe(4);
    await test.close();
    await open();
    await configure({ policy: 'consistent-hash' });
    for (const id of ['d', 'b', 'a', 'c']) await test.server(id);
    expect(await placesOf(40, (n) => ids[n]!)).toEqual(first);
    // Without one server only its ids move.
    await test.store.removeServer(test.pool, 'b');
    const without = await placesOf(40, (n) => ids[n]!);
    without.forEach((place, n) => {
      if (first[n] === 'b') expect(place).not.toBe('b');
      else expect(place).toBe(first[n]);
    });
    const order = clockwise(
      ['a', 'c', 'd'].map((serverId) => ({ serverId, weight: 1 })),
      'job/g0/0',
    );
    expect(order[0]!.serverId).toBe(without[0]);
    await test.server(order[0]!.serverId, 1);
    expect((await acquire(ids[0]!)).serverId).toBe(order[1]!.serverId);
  });

  it('weights count in least-tokens and least-sessions', async () => {
    await test.server('big', 1_000, { weight: 3 });
    await test.server('small', 1_000, { weight: 1 });
    for (const policy of ['least-tokens', 'least-sessions'] as const) {
      await configure({ policy });
      const places = await placesOf(120, (n) => ({ contextTokens: 256, sessionId: `${policy}-${n}` }));
      const onBig = places.filter((id) => id === 'big').length;
      expect(Math.abs(onBig - 90), policy).toBeLessThanOrEqual(4);
    }
  });
});

describe('sessions', () => {
  it('keep their server up to the margin, inclusive, and leave it above; not with a long context', async () => {
    await test.server('a');
    await test.server('b');
    await configure({ affinityBreakMargin: 2, affinityBreakMaxContextTokens: 10_000 });
    const turn = (more = {}) => acquire({ sessionId: 's', ...more });
    const first = await turn();
    expect((await turn()).branch).toBe('sticky-hit'); // 1 <= 0 + 2
    expect((await turn()).branch).toBe('sticky-hit'); // 2 <= 0 + 2: the boundary
    expect(await turn({ contextTokens: 10_001 })).toMatchObject({ branch: 'sticky-hit', serverId: first.serverId });
    const broken = await turn({ contextTokens: 10_000 });
    expect(broken).toMatchObject({ branch: 'sticky-broken', key: 0, inflight: 1 });
    expect(broken.serverId).not.toBe(first.serverId);
    expect((await turn()).serverId).toBe(broken.serverId);
  });

  it('leave a full server when the margin is broken instead of waiting for it', async () => {
    await test.server('a', 2);
    const first = await acquire({ sessionId: 's' });
    await acquire({ sessionId: 's' });
    await test.server('b', 2);
    expect((await acquire({ sessionId: 's' })).error).toBe('NO_SERVER_AVAILABLE');
    await configure({ affinityBreakMargin: 1 });
    expect(await acquire({ sessionId: 's' })).toMatchObject({ serverId: 'b', branch: 'sticky-broken' });
    expect(first.serverId).toBe('a');
  });

  it('keep their data-parallel rank on a server, and lose it elsewhere', async () => {
    const { epoch } = await test.server('a');
    expect((await acquire({ sessionId: 's' })).dpRank).toBeUndefined();
    expect((await acquire({ sessionId: 's', dpRank: 3 })).dpRank).toBe(3);
    expect((await acquire({ sessionId: 's', acquireId: 'again' })).dpRank).toBe(3);
    expect(await acquire({ sessionId: 's', acquireId: 'again' })).toMatchObject({ branch: 'repeated', dpRank: 3 });
    await test.store.removeServer(test.pool, 'a');
    expect((await test.server('a')).epoch).toBeGreaterThan(epoch);
    expect((await acquire({ sessionId: 's' })).dpRank).toBeUndefined();
  });

  it('are cleared all at once: idle ones forgotten, those with leases bound anew', async () => {
    await test.server('a');
    const kept = await acquire({ sessionId: 'busy' });
    for (let n = 0; n < 300; n++) await test.release((await acquire({ sessionId: `idle-${n}` })).acquireId);
    let cleared = 0;
    for (let cursor = ''; cursor !== '0';) {
      const page = await pools.clearSessions(test.pool, cursor || '0');
      cleared += page.cleared;
      ({ cursor } = page);
    }
    expect(cleared).toBe(301);
    expect((await test.store.status(test.pool)).sessions).toBe(1);
    expect((await acquire({ sessionId: 'busy' })).branch).toBe('least-loaded');
    await test.release(kept.acquireId);
    expect((await test.store.status(test.pool)).sessions).toBe(1);
  });

  it('go by the age and number of the settings, and those that went are counted', async () => {
    await test.server('a');
    await configure({ maxSessions: 2 });
    for (const sessionId of ['one', 'two', 'three']) await test.release((await acquire({ sessionId })).acquireId);
    expect(await test.store.status(test.pool)).toMatchObject({ sessions: 2, sessionsEvicted: 1 });
    await configure({ maxSessions: 1 });
    expect((await test.store.evictSessions(test.pool, 3_600_000)).evicted).toBe(1);
    expect(await test.store.status(test.pool)).toMatchObject({ sessions: 1, sessionsEvicted: 2 });
    expect(await test.redis.hvals(`${test.root}:servers:sessions`)).toEqual(['1']);
  });
});

describe('siblings of a group', () => {
  const sibling = (n: number) => ({ groupId: 'job/g', requestId: `job/g/${n}`, contextTokens: 4_000 });

  it('spread over different servers while these have the lowest load', async () => {
    for (const id of ['a', 'b', 'c', 'd']) await test.server(id);
    const first = await acquire(sibling(0));
    // Others make the order such that the sibling's server would be next.
    const others = [await acquire(), await acquire(), await acquire()];
    await test.release(first.acquireId);
    const again = await acquire(sibling(0));
    for (const { acquireId } of others) await test.release(acquireId);
    expect(new Set([again.serverId, ...(await placesOf(3, (n) => sibling(n + 1)))]).size).toBe(4);
  });

  it('prefer a server without one of them to the one chosen longest ago', async () => {
    await test.server('a');
    await test.server('b');
    const own = await acquire(sibling(0));
    await test.release((await acquire()).acquireId);
    const other = await acquire();
    // Both have one lease now; the sibling's server was chosen longest ago.
    expect(other.serverId).not.toBe(own.serverId);
    expect(await acquire(sibling(1))).toMatchObject({ serverId: other.serverId, branch: 'group-spread', key: 1 });
  });

  it('stay together up to the cap under affinity, then spill; auto only with long prompts and no KV pressure', async () => {
    for (const id of ['a', 'b', 'c']) await test.server(id);
    await configure({ groupPlacement: 'group-affinity', groupAffinityCap: 3 });
    const places = await placesOf(6, sibling);
    expect(new Set(places.slice(0, 3)).size).toBe(1);
    expect(new Set(places.slice(3)).size).toBe(1);
    expect(places[3]).not.toBe(places[0]);
    expect((await acquire(sibling(7))).branch).not.toBe('group-affinity');

    await configure({ groupPlacement: 'auto', groupAffinityCap: 16 });
    expect((await acquire({ ...sibling(8), contextTokens: 2_047 })).branch).not.toBe('group-affinity');
    const together = await acquire(sibling(9));
    expect(together.branch).toBe('group-affinity');
    const { servers: list } = await test.store.listServers(test.pool, '0');
    for (const { serverId, epoch } of list) {
      await servers.reportLoads(test.pool, [{ serverId, epoch, running: 0, waiting: 0, kvUse: 0.71 }]);
    }
    expect((await acquire(sibling(10))).branch).not.toBe('group-affinity');
  });

  it('leave no trace when their leases are returned', async () => {
    await test.server('a');
    for (let n = 0; n < 3; n++) await test.release((await acquire(sibling(n))).acquireId);
    const left = await test.redis.keys(`${test.root}:*`);
    expect(left.filter((key) => /group-leases|servers:tokens|servers:sessions/.test(key))).toEqual([]);
  });
});

describe('decisions', () => {
  it('are told in the reply, kept in a bounded ring and read in pages, the latest first', async () => {
    for (const id of ['a', 'b', 'c', 'd', 'e']) await test.server(id, 1_000);
    const first = await acquire();
    expect(first).toMatchObject({ policy: 'least-inflight', branch: 'tie', key: 0, eligible: 5, policyVersion: 0 });
    expect(first.best?.map(({ serverId }) => serverId)).toEqual(['a', 'b', 'c', 'd']);
    for (let page = 0; page < 6; page++) {
      const items = Array.from({ length: 100 }, (_, n) => ({
        acquireId: `x${page * 100 + n}`,
        requestId: 'r',
        ...worker,
      }));
      await test.store.acquire(test.pool, items);
    }
    const seen: number[] = [];
    for (let before: number | undefined, more = true; more;) {
      const page = await pools.decisions(test.pool, { before, limit: 100, full: false });
      seen.push(...page.decisions.map(({ seq }) => seq));
      before = seen.at(-1);
      ({ more } = page);
    }
    expect(seen).toEqual(Array.from({ length: 512 }, (_, n) => 601 - n));
    const { decisions } = await pools.decisions(test.pool, { limit: 1, full: false });
    expect(decisions[0]).toMatchObject({ acquireId: 'x599', decision: { branch: 'tie', key: 120, eligible: 5 } });
    expect(decisions[0]!.decision.best).toHaveLength(4);
  });

  it('carry all they were made from when asked, or when sampled, and lead to the same choice again', async () => {
    for (const id of ['a', 'b', 'c']) await test.server(id);
    const explained = await acquire({ explain: true, groupId: 'g', sessionId: 's' });
    expect(explained.snapshot).toMatchObject({ wish: { groupId: 'g', sessionId: 's' }, newestWeightVersion: 0 });
    expect(explained.snapshot!.servers).toHaveLength(3);
    expect(replayDecision(explained.snapshot!)).toMatchObject({ server: explained.serverId, branch: 'tie' });
    await configure({ decisionSampleEvery: 10 });
    await placesOf(30);
    const { decisions } = await pools.decisions(test.pool, { limit: 16, full: true });
    expect(decisions.map(({ seq }) => seq)).toEqual([30, 20, 10, 1]);
    for (const { decision, serverId } of decisions) {
      expect(chooseServer(decision.snapshot!)).toMatchObject({ server: serverId, branch: decision.branch });
    }
  });
});

it('needs at most 700 bytes of Redis for a lease of a sibling, with all indexes', async () => {
  for (let n = 0; n < 8; n++) await test.server(`server-${n}`, 100_000);
  const leases = 4_000;
  for (let page = 0; page < leases; page += 100) {
    const items = Array.from({ length: 100 }, (_, n) => ({
      acquireId: `acquire-${page + n}-0123456789abcdef`,
      requestId: `job-2026-11/group-${Math.floor((page + n) / 8)}/${n % 8}`,
      groupId: `job-2026-11/group-${Math.floor((page + n) / 8)}`,
      contextTokens: 1_234,
      ...worker,
    }));
    await test.store.acquire(test.pool, items);
  }
  let bytes = 0;
  const scan = test.redis.scanStream({ match: `${test.root}:*`, count: 1_000 }) as AsyncIterable<string[]>;
  for await (const keys of scan) {
    for (const key of keys) bytes += Number(await test.redis.memory('USAGE', key, 'SAMPLES', 0));
  }
  expect(bytes / leases).toBeLessThan(700);
});
