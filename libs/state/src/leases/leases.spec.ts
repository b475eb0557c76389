import { afterEach, beforeEach, expect, it } from 'vitest';
import { keysBelow } from '../audit/key-scan';
import { openTestStore } from '../routing/routing-store.fixture';

let test: ReturnType<typeof openTestStore>;
beforeEach(() => {
  test = openTestStore({ rememberMs: 1_500 });
});
afterEach(() => test.close());

it('uses all of 4 idle servers for 200 pairs of acquire and release', async () => {
  for (const id of ['a', 'b', 'c', 'd']) await test.server(id);
  const worker = await test.worker('w');
  const chosen = new Map<string, number>();
  for (let pair = 0; pair < 200; pair++) {
    const { acquireId, serverId } = await test.acquire(worker);
    chosen.set(serverId, (chosen.get(serverId) ?? 0) + 1);
    await test.release(acquireId);
  }
  expect(Object.fromEntries(chosen)).toEqual({ a: 50, b: 50, c: 50, d: 50 });
});

it('shares by weight, and never above the capacity of a server', async () => {
  await test.server('big', 100, { weight: 3 });
  await test.server('small', 100, { weight: 1 });
  await test.server('tiny', 2, { weight: 5 });
  const worker = await test.worker('w');
  const items = Array.from({ length: 82 }, (_, n) => ({ acquireId: `a${n}`, requestId: 'r', ...worker }));
  await test.leases.acquire(test.pool, items);
  const { servers } = await test.servers.list(test.pool);
  const inflight = Object.fromEntries(servers.map((server) => [server.serverId, server.inflight]));
  expect(inflight.tiny).toBe(2);
  expect(Math.abs(inflight.big! - 60)).toBeLessThanOrEqual(3);
  expect(inflight.big! + inflight.small!).toBe(80);
});

it('refuses at once, with different errors for an empty, a full and a paused pool', async () => {
  const worker = await test.worker('w');
  const refusal = (more = {}) => test.acquire(worker, more);
  expect(await refusal()).toMatchObject({ error: 'NO_SERVER_AVAILABLE', reason: 'no-servers' });
  await test.server('a', 1);
  await test.acquire(worker);
  expect(await refusal()).toMatchObject({ error: 'SERVERS_FULL', reason: 'servers-full' });
  expect(await refusal({ labels: { zone: 'none' } })).toMatchObject({
    error: 'NO_SERVER_AVAILABLE',
    reason: 'none-fits',
  });
  expect(await refusal({ weightVersion: 0 })).toMatchObject({ error: 'SERVERS_FULL' });
  expect(await refusal({ excludeServers: ['a', 'b'] })).toMatchObject({ reason: 'none-fits' });
  await test.server('b', 1);
  await test.servers.cordon(test.pool, { serverId: 'b', cordoned: true });
  expect(await refusal({ excludeServers: ['a'] })).toMatchObject({
    error: 'NO_SERVER_AVAILABLE',
    reason: 'none-ready',
  });
  await test.servers.cordon(test.pool, { serverId: 'a', cordoned: true });
  expect(await refusal()).toMatchObject({ error: 'NO_SERVER_AVAILABLE', reason: 'none-ready' });
  expect(await refusal({ excludeServers: ['a', 'b'] })).toMatchObject({ reason: 'none-fits' });
  await test.pools.pause(test.pool, { paused: true });
  expect(await refusal()).toMatchObject({ error: 'POOL_PAUSED', reason: 'paused' });
});

it('gives a repeated acquire its lease, also after its release while that is remembered', async () => {
  await test.server('a');
  const worker = await test.worker('w');
  const first = await test.acquire(worker, { acquireId: 'x' });
  expect(await test.acquire(worker, { acquireId: 'x' })).toEqual({ ...first, branch: 'repeated', inflight: 1 });
  expect((await test.release('x')).results).toEqual([{ released: true, reason: 'released' }]);
  expect((await test.release('x', first.seq)).results).toEqual([{ released: false, reason: 'already-released' }]);
  expect(await test.acquire(worker, { acquireId: 'x' })).toMatchObject({ seq: first.seq, branch: 'repeated' });
  expect((await test.pools.status(test.pool)).leases).toBe(0);
  // The acquireId is forgotten after rememberMs. Then the same acquire is a new one.
  await expect.poll(async () => (await test.acquire(worker, { acquireId: 'x' })).seq).toBeGreaterThan(first.seq);
});

it('does not let a late release of an older lease of the same acquireId touch the later one', async () => {
  await test.server('a');
  const worker = await test.worker('w');
  const first = await test.acquire(worker, { acquireId: 'x' });
  await test.release('x');
  await expect.poll(async () => (await test.acquire(worker, { acquireId: 'x' })).branch).toBe('least-loaded');
  expect((await test.release('x', first.seq)).results[0]).toEqual({ released: false, reason: 'already-released' });
  expect((await test.pools.status(test.pool)).leases).toBe(1);
});

it('refuses an acquire whose release came first (tombstone), and an unknown lease changes nothing', async () => {
  await test.server('a');
  const worker = await test.worker('w');
  expect((await test.release('late')).results[0]).toEqual({ released: false, reason: 'tombstone' });
  expect((await test.release('late')).results[0]).toEqual({ released: false, reason: 'tombstone' });
  expect(await test.acquire(worker, { acquireId: 'late' })).toMatchObject({ error: 'RELEASED' });
  expect((await test.release('never', 77)).results[0]).toEqual({ released: false, reason: 'unknown' });
  expect((await test.pools.status(test.pool)).leases).toBe(0);
});

it('keeps a session on its server while the others are emptier, and refuses rather than move it when full', async () => {
  await test.server('a', 3);
  await test.server('b', 3);
  const worker = await test.worker('w');
  const first = await test.acquire(worker, { sessionId: 's' });
  for (let turn = 0; turn < 2; turn++) {
    const next = await test.acquire(worker, { sessionId: 's' });
    expect(next).toMatchObject({ serverId: first.serverId, branch: 'sticky-hit' });
  }
  expect(await test.acquire(worker, { sessionId: 's' })).toMatchObject({ error: 'SERVERS_FULL' });
  expect(await test.acquire(worker)).not.toMatchObject({ serverId: first.serverId });
  // A restarted engine has lost the cache of the session, which is bound to a server anew.
  await test.servers.remove(test.pool, { serverId: first.serverId });
  expect(await test.acquire(worker, { sessionId: 's' })).toMatchObject({ branch: 'least-loaded' });
});

it('forgets finished and idle sessions, never one with leases', async () => {
  await test.server('a');
  const worker = await test.worker('w');
  const kept = await test.acquire(worker, { sessionId: 'kept' });
  const { acquireId } = await test.acquire(worker, { sessionId: 'idle' });
  await test.release(acquireId);
  expect(await test.sessions.evict(test.pool, { idleMs: 0 })).toEqual({ evicted: 1, more: false });
  expect(await test.sessions.finish(test.pool, { sessionId: 'idle' })).toMatchObject({ finished: false });
  expect(await test.sessions.finish(test.pool, { sessionId: 'kept' })).toMatchObject({ finished: true });
  expect((await test.pools.status(test.pool)).sessions).toBe(1);
  await test.release(kept.acquireId);
  expect((await test.pools.status(test.pool)).sessions).toBe(0);
});

it('needs at most 700 bytes of Redis for a lease with all its indexes', async () => {
  await test.server('server-000', 100_000);
  const worker = await test.worker('worker-with-a-usual-name');
  // Only keys of this pool are measured, because other tests use this Redis at the same time.
  const leases = 2_000;
  for (let page = 0; page < leases; page += 100) {
    const items = Array.from({ length: 100 }, (_, n) => ({
      acquireId: `acquire-${page + n}-0123456789abcdef`,
      requestId: `job-2026-11/group-${page + n}/3`,
      ...worker,
    }));
    await test.leases.acquire(test.pool, items);
  }
  let bytes = 0;
  for await (const keys of keysBelow(test.redis, `${test.root}:`)) {
    for (const key of keys) bytes += Number(await test.redis.memory('USAGE', key, 'SAMPLES', 0));
  }
  expect(bytes / leases).toBeLessThan(700);
});
