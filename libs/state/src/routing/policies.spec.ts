import { turnAfter } from '@broomwagon/models';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { clockwise } from '../../../policies/src/routing/policies/consistent-hash';
import { openTestStore, openTestWorker, type TestStore } from './routing-store.fixture';

let test: TestStore;
let worker: Awaited<ReturnType<typeof openTestWorker>>;
beforeEach(async () => {
  test = openTestStore();
  worker = await openTestWorker(test);
});
afterEach(() => test.close());

describe('policies', () => {
  it('least-tokens: the server with the fewest context and uncached tokens', async () => {
    await test.server('a');
    await test.server('b');
    await test.configure({ policy: 'least-tokens' });
    const long = await worker.acquire({ contextTokens: 100_000 });
    expect(new Set(await worker.acquirePlaces(5, () => ({ contextTokens: 1_000 })))).toEqual(
      new Set([long.serverId === 'a' ? 'b' : 'a']),
    );
    await test.release(long.acquireId);
    expect((await worker.acquire()).serverId).toBe(long.serverId);
    const { servers: list } = await test.servers.list(test.pool);
    const epoch = list.find(({ serverId }) => serverId === long.serverId)!.epoch;
    const report = { serverId: long.serverId, epoch, running: 1, waiting: 0, uncachedTokens: 50_000 };
    await test.servers.reportLoads(test.pool, { reports: [report] });
    expect((await worker.acquire()).serverId).not.toBe(long.serverId);
  });

  it('least-sessions: a new session goes to the server with the fewest active ones, whatever their leases', async () => {
    await test.server('a');
    await test.server('b');
    await test.configure({ policy: 'least-sessions' });
    const first = await worker.acquire({ sessionId: 's1' });
    for (let turn = 0; turn < 5; turn++) await worker.acquire({ sessionId: 's1' });
    const second = await worker.acquire({ sessionId: 's2' });
    expect(second.serverId).not.toBe(first.serverId);
    await worker.acquire({ sessionId: 's3' });
    await worker.acquire({ sessionId: 's4' });
    // A finished session is no longer active.
    await test.release(second.acquireId);
    expect(await test.sessions.finish(test.pool, { sessionId: 's2' })).toMatchObject({ finished: true });
    expect(await worker.acquire({ sessionId: 's5' })).toMatchObject({ serverId: second.serverId, key: 1 });
  });

  it('round-robin: in turn, twice as often by weight 2, whatever the leases; a new server joins at the turn in hand', async () => {
    await test.server('a', 1_000, { weight: 2 });
    await test.server('b', 1_000);
    await test.configure({ policy: 'round-robin' });
    const places = await worker.acquirePlaces(300);
    expect(places.filter((id) => id === 'a').length).toBe(200);
    await test.server('c', 1_000);
    const later = await worker.acquirePlaces(40);
    expect(later.filter((id) => id === 'c').length).toBeGreaterThanOrEqual(9);
    expect(later.filter((id) => id === 'c').length).toBeLessThanOrEqual(11);
    expect(turnAfter(0, 2)).toBe(2_048);
  });

  it('round-robin: of equal turns the one chosen longest ago, whatever its id', async () => {
    await test.server('a');
    await test.server('b');
    await test.configure({ policy: 'round-robin' });
    // The session brings b its second turn before a has had it.
    const requests = [{}, { sessionId: 's' }, { sessionId: 's' }, {}, {}];
    expect(await worker.acquirePlaces(5, (n) => requests[n]!)).toEqual(['a', 'b', 'b', 'a', 'b']);
  });

  it('consistent-hash: the same choice on a fresh start in any order of registration, and the next one when full', async () => {
    await test.configure({ policy: 'consistent-hash' });
    const ids = Array.from({ length: 40 }, (_, n) => ({ requestId: `job/g${n}/0` }));
    for (const id of ['a', 'b', 'c', 'd']) await test.server(id);
    const first = await worker.acquirePlaces(40, (n) => ids[n]!);
    expect(new Set(first).size).toBe(4);
    await test.close();
    test = openTestStore();
    worker = await openTestWorker(test);
    await test.configure({ policy: 'consistent-hash' });
    for (const id of ['d', 'b', 'a', 'c']) await test.server(id);
    expect(await worker.acquirePlaces(40, (n) => ids[n]!)).toEqual(first);
    // Without one server only its ids move.
    await test.servers.remove(test.pool, { serverId: 'b' });
    const without = await worker.acquirePlaces(40, (n) => ids[n]!);
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
    expect((await worker.acquire(ids[0]!)).serverId).toBe(order[1]!.serverId);
  });

  it('random: by the acquireId alone, all servers about as often, and only servers that fit', async () => {
    for (const id of ['a', 'b', 'c', 'd']) await test.server(id, 1_000);
    await test.configure({ policy: 'random' });
    const places = await worker.acquirePlaces(400);
    for (const id of ['a', 'b', 'c', 'd']) expect(places.filter((one) => one === id).length).toBeGreaterThan(60);
    expect(new Set(await worker.acquirePlaces(20, () => ({ excludeServers: ['a', 'c', 'd'] })))).toEqual(
      new Set(['b']),
    );
  });

  it('power-of-two: the less loaded of two drawn servers', async () => {
    for (const id of ['a', 'b', 'c']) await test.server(id, 1_000);
    await test.configure({ policy: 'power-of-two' });
    const places = await worker.acquirePlaces(300);
    for (const id of ['a', 'b', 'c']) {
      expect(Math.abs(places.filter((one) => one === id).length - 100)).toBeLessThanOrEqual(5);
    }
    expect(new Set(await worker.acquirePlaces(10, () => ({ excludeServers: ['a', 'c'] })))).toEqual(new Set(['b']));
    // Server b has ten leases more now, so it is never the less loaded of two.
    expect(await worker.acquirePlaces(10)).not.toContain('b');
  });

  it('least-tokens and least-sessions: in proportion to the weights of servers', async () => {
    await test.server('big', 1_000, { weight: 3 });
    await test.server('small', 1_000, { weight: 1 });
    for (const policy of ['least-tokens', 'least-sessions'] as const) {
      await test.configure({ policy });
      const places = await worker.acquirePlaces(120, (n) => ({ contextTokens: 256, sessionId: `${policy}-${n}` }));
      const onBig = places.filter((id) => id === 'big').length;
      expect(Math.abs(onBig - 90), policy).toBeLessThanOrEqual(4);
    }
  });
});
