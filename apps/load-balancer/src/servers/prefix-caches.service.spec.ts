import type { WeightSyncMode } from '@broomwagon/contracts';
import { connectRedis, FunctionRunner, WeightStore } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { openLoadBalancers, type LoadBalancers } from '../load-balancer.fixture';

const NO_PAUSE = { capabilities: { pauseModes: [], prefixCacheReset: true } };
const redis = connectRedis({ url: testRedisUrl() });
let lb: LoadBalancers;
let weights: WeightStore;
beforeAll(async () => {
  lb = await openLoadBalancers(1);
  weights = new WeightStore(new FunctionRunner(redis, lb.pool.replace(/-\d+$/, '')));
});
afterAll(async () => {
  redis.disconnect();
  await lb.close();
});
beforeEach(() => {
  lb.nextPool();
  Object.assign(lb.engine, { resets: 0, resetStatus: 200, weightVersion: undefined, hangs: false });
});
const readVersion = async (serverId: string) => (await lb.list()).get(serverId)!.weightVersion;
const begin = (mode: WeightSyncMode) => weights.begin(lb.pool, { syncId: 's', version: 2, mode, deadlineMs: 60_000 });

it.each(['abort', 'wait'] as const)(
  'resets the prefix cache of an engine that was not paused before its server counts as one of the new weights: %s',
  async (mode) => {
    await lb.server('a', 1, { weightVersion: 1, ...NO_PAUSE });
    expect(lb.engine.resets).toBe(0);
    await begin(mode);
    expect(await lb.call('server.update', { serverId: 'a', weightVersion: 2 })).not.toHaveProperty(
      'weightVersionTaken',
    );
    expect(await weights.end(lb.pool, { syncId: 's', outcome: 'committed', reason: 'asked' })).toMatchObject({
      confirmedServers: 1,
    });
    // A call that took long was repeated.
    const { resets } = lb.engine;
    expect(resets).toBeGreaterThan(0);
    // A repeated report, and reports of the same version by other calls, reset nothing.
    const { epoch } = await lb.server('a', 1, { weightVersion: 2, ...NO_PAUSE });
    await lb.call('server.heartbeat', { serverId: 'a', epoch, weightVersion: 2 });
    expect(lb.engine.resets).toBe(resets);
  },
);

it('resets a prefix cache whether the server, its registration or the engine reports the version', async () => {
  const { epoch } = await lb.server('a', 1, { weightVersion: 1 });
  await lb.call('server.heartbeat', { serverId: 'a', epoch, weightVersion: 2 });
  await lb.server('a', 1, { weightVersion: 3 });
  expect(lb.engine.resets).toBe(2);
  // The engine counts its own versions; a change of its version is taken.
  lb.engine.weightVersion = '1';
  await expect.poll(async () => (await lb.list()).get('a')).toMatchObject({ engineWeightVersion: 1, weightVersion: 3 });
  lb.engine.weightVersion = '4';
  await expect.poll(() => readVersion('a')).toBe(4);
  // Servers of the pools before this one have the same engine.
  expect(lb.engine.resets).toBeGreaterThanOrEqual(3);
});

it('resets no cache of an engine with salts while requests are kept over the change of weights', async () => {
  await lb.server('a', 1, { weightVersion: 1, capabilities: { cacheSalt: true } });
  const w = await lb.worker();
  await lb.acquire(w);
  await lb.call('server.update', { serverId: 'a', weightVersion: 2 });
  await begin('keep');
  await lb.call('server.update', { serverId: 'a', weightVersion: 3 });
  expect([await readVersion('a'), lb.engine.resets]).toEqual([3, 0]);
});

it('lets an engine without salts finish its requests, then resets its cache, before it takes the next request', async () => {
  await lb.server('a', 2, { weightVersion: 1, ...NO_PAUSE });
  const w = await lb.worker();
  const { leaseId, ...lease } = await lb.acquire(w);
  expect(lease).not.toHaveProperty('cacheSalt');
  await begin('keep');
  expect(await lb.call('server.update', { serverId: 'a', weightVersion: 2 })).toMatchObject({
    weightVersionTaken: false,
  });
  await weights.end(lb.pool, { syncId: 's', outcome: 'committed', reason: 'asked' });
  expect((await lb.list()).get('a')).toMatchObject({ state: 'quarantined', pendingWeightVersion: 2 });
  await expect(lb.acquire(w)).rejects.toMatchObject({ code: 'NO_SERVER_AVAILABLE' });
  expect(lb.engine.resets).toBe(0);
  await lb.release(leaseId);
  expect(await lb.acquire(w, { waitMs: 10_000 })).toMatchObject({ serverId: 'a', weightVersion: 2 });
  expect(lb.engine.resets).toBe(1);
});

it('calls no engine that had the name of the server before, and calls an engine that has moved at its new address', async () => {
  const resets = () => lb.engine.resets;
  await lb.server('a', 1, { weightVersion: 1 });
  lb.engine.resetStatus = 500;
  // A new pod under the old name; then an engine without an identity, at another address.
  expect(await lb.server('a', 1, { weightVersion: 2, instanceId: 'b' })).not.toHaveProperty('weightVersionTaken');
  // A server name stays with its address while the engine there answers.
  const leave = async () => {
    const { epoch } = (await lb.list()).get('a')!;
    await lb.call('server.fence', { serverId: 'a', epoch });
  };
  await leave();
  const elsewhere = lb.engine.url.replace('127.0.0.1', '127.0.0.2');
  const moved = { weightVersion: 3, instanceId: undefined, endpoint: elsewhere };
  expect(await lb.server('a', 1, moved)).not.toHaveProperty('weightVersionTaken');
  expect([await readVersion('a'), resets()]).toEqual([3, 0]);
  await leave();
  // A start that was registered before, at a new address.
  lb.engine.resetStatus = 200;
  const gone = { instanceId: 'c', endpoint: 'http://127.0.0.1:1' };
  await lb.server('a', 1, { ...gone, weightVersion: 3 });
  const back = await lb.server('a', 1, { instanceId: 'c', weightVersion: 4 });
  expect(back).not.toHaveProperty('weightVersionTaken');
  expect([await readVersion('a'), resets()]).toEqual([4, 1]);
});

it('gives no leases to an engine until its reset succeeds, and takes the version of an engine without the route', async () => {
  await lb.server('a', 1, { weightVersion: 1, ...NO_PAUSE });
  const say = (weightVersion: number) => lb.call('server.update', { serverId: 'a', weightVersion });
  for (const status of [400, 401, 403, 408, 429]) {
    lb.engine.resetStatus = status;
    expect(await say(2)).toMatchObject({ weightVersionTaken: false });
  }
  lb.engine.resetStatus = 500;
  expect(await say(2)).toMatchObject({ weightVersionTaken: false });
  expect(await lb.server('a', 1, { weightVersion: 2, ...NO_PAUSE })).toMatchObject({
    state: 'quarantined',
    weightVersionTaken: false,
  });
  const { epoch } = (await lb.list()).get('a')!;
  const beat = { serverId: 'a', epoch, weightVersion: 2 };
  expect(await lb.call('server.heartbeat', beat)).toMatchObject({ state: 'quarantined', weightVersionTaken: false });
  expect(await readVersion('a')).toBe(1);
  expect((await lb.metrics()).join()).toMatch(/prefix_cache_resets_total{[^}]*outcome="failed"[^}]*} ([89]|\d\d)/);
  lb.engine.resetStatus = 200;
  // The next probe requests the reset again.
  await expect.poll(async () => (await lb.list()).get('a')).toMatchObject({ state: 'ready', weightVersion: 2 });
  for (const [version, status] of [404, 405, 501].entries()) {
    lb.engine.resetStatus = status;
    await say(3 + version);
    expect(await readVersion('a')).toBe(3 + version);
  }
});

it('answers before its caller gives up when the engine hangs', async () => {
  await lb.server('a', 1, { weightVersion: 1, ...NO_PAUSE });
  lb.engine.hangs = true;
  expect(await lb.server('a', 1, { weightVersion: 2 })).toMatchObject({ weightVersionTaken: false });
});
