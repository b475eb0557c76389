import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore, type TestStore } from '../routing/routing-store.fixture';
import type { ServerStore } from './server.store';

const LIMITS = { suspectAfterMs: 5_000, failedAfterMs: 30_000 };
let test: TestStore;
let servers: ServerStore;
beforeEach(() => {
  test = openTestStore();
  ({ servers } = test);
});
afterEach(() => test.close());

async function silence(ageMs: number, ...serverIds: string[]) {
  await test.redis.zadd(`${test.root}:servers:watched`, ...serverIds.flatMap((id) => [Date.now() - ageMs, id]));
}
async function states() {
  const { servers: list } = await test.servers.list(test.pool);
  return Object.fromEntries(list.map(({ serverId, state }) => [serverId, state]));
}
const waiting = (acquireId: string, more: object = {}) => ({
  acquireId,
  waitMs: 20_000,
  replyTo: `inbox.${acquireId}`,
  ...more,
});
const discovered = (serverId: string, instanceId = serverId) =>
  test.servers.register(test.pool, {
    serverId,
    instanceId,
    endpoint: `http://${serverId}:8000`,
    dialect: 'vllm',
    maxInflight: 100,
    weight: 1,
    discovered: true,
  });

it('refuses to change an unknown server', async () => {
  const unknown = { code: 'SERVER_NOT_FOUND' };
  await expect(servers.update(test.pool, { serverId: 'x', maxInflight: 1 })).rejects.toMatchObject(unknown);
  await expect(servers.drain(test.pool, { serverId: 'x', deadlineMs: 1_000 })).rejects.toMatchObject(unknown);
  await expect(servers.cordon(test.pool, { serverId: 'x', cordoned: true })).rejects.toMatchObject(unknown);
  await expect(servers.cordon(test.pool, { serverId: 'x', cordoned: false })).rejects.toMatchObject(unknown);
  expect(await test.redis.keys(`${test.root}:*`)).toEqual([]);
});

it('treats an earlier start at a listed address as another process, and a later one as one restart only', async () => {
  const { epoch } = await discovered('a', 'started-100.25');
  await test.acquire(await test.worker('w'));
  for (const start of ['started-90', 'started-100.25', 'started-90.5']) {
    expect(await discovered('a', start)).toMatchObject({ epoch });
  }
  for (const startedAtSeconds of [90, 100.25]) {
    await servers.update(test.pool, { serverId: 'a', epoch, report: { startedAtSeconds } });
  }
  const { servers: list } = await test.servers.list(test.pool);
  expect(list).toMatchObject([{ epoch, inflight: 1, engineStartedAtSeconds: 100.25 }]);
  const second = await discovered('a', 'started-200');
  expect(second.epoch).not.toBe(epoch);
  expect(await discovered('a', 'started-100.25')).toMatchObject({ epoch: second.epoch });
  // A probe sees the restart before the list does.
  const report = { startedAtSeconds: 200 };
  await servers.update(test.pool, { serverId: 'a', epoch: second.epoch, report });
  const third = await servers.update(test.pool, {
    serverId: 'a',
    epoch: second.epoch,
    report: { startedAtSeconds: 300 },
  });
  expect(third.epoch).not.toBe(second.epoch);
  expect(await discovered('a', 'started-300')).toMatchObject({ epoch: third.epoch });
  expect(await discovered('a', 'another')).not.toMatchObject({ epoch: third.epoch });
});

it('changes a server and keeps its leases, its epoch, and fields that are not given', async () => {
  const { epoch } = await test.server('a', 1, { weight: 2 });
  const worker = await test.worker('w');
  await test.acquire(worker);
  await test.acquire(worker, waiting('next'));
  const labels = { zone: 'b' };
  expect(await servers.update(test.pool, { serverId: 'a', maxInflight: 3, labels })).toMatchObject({
    serverId: 'a',
    epoch,
    inflight: 2,
    capacity: 3,
    answers: [{ acquireId: 'next' }],
  });
  const [server] = (await test.servers.list(test.pool)).servers;
  expect(server).toMatchObject({ epoch, inflight: 2, maxInflight: 3, weight: 2, labels });
  // A server that a list finds again keeps the values set by name.
  await discovered('a');
  expect((await test.servers.list(test.pool)).servers).toMatchObject([{ epoch, inflight: 2, maxInflight: 3 }]);
});

it('never resets the count of a live server that is added again', async () => {
  await test.server('a', 5);
  const worker = await test.worker('w');
  for (let n = 0; n < 3; n++) await test.acquire(worker);
  await test.server('a', 5);
  expect((await test.servers.list(test.pool)).servers).toMatchObject([{ inflight: 3 }]);
});

it('gives a cordoned server no new leases, not even for its sessions or after a restart', async () => {
  await test.server('a', 5);
  const worker = await test.worker('w');
  const held = await test.acquire(worker, { sessionId: 's' });
  expect(await servers.cordon(test.pool, { serverId: 'a', cordoned: true })).toMatchObject({
    state: 'cordoned',
    inflight: 1,
  });
  await servers.cordon(test.pool, { serverId: 'a', cordoned: true });
  expect(await test.acquire(worker, { sessionId: 's' })).toMatchObject({ error: 'NO_SERVER_AVAILABLE' });
  await test.servers.recordProbes(test.pool, ['a']);
  expect((await test.release(held.acquireId)).results).toEqual([{ released: true, reason: 'released' }]);
  await test.acquire(worker, waiting('w1'));
  const again = await test.servers.register(test.pool, {
    serverId: 'a',
    instanceId: 'another start',
    endpoint: 'http://a:8000',
    dialect: 'vllm',
    probe: false,
    maxInflight: 5,
    weight: 1,
  });
  expect(again).toMatchObject({ state: 'cordoned', answers: [] });
  expect(await servers.cordon(test.pool, { serverId: 'a', cordoned: false })).toMatchObject({
    state: 'ready',
    answers: [{ acquireId: 'w1' }],
  });
});

it('fences an epoch: its leases and sessions expire, and only a new start makes the server ready again', async () => {
  const { epoch } = await test.server('a', 1);
  const worker = await test.worker('w');
  const held = await test.acquire(worker, { sessionId: 's' });
  await test.acquire(worker, { ...waiting('w1'), sessionId: 's' });
  const fence = () => servers.fence(test.pool, { serverId: 'a', epoch, reason: 'does not stop' });
  expect(await servers.fence(test.pool, { serverId: 'a', epoch: 'another', reason: '' })).toMatchObject({
    changed: false,
    state: 'ready',
    epoch,
  });
  const fenced = await fence();
  expect(fenced).toMatchObject({ changed: true, state: 'failed' });
  expect(await fence()).toEqual({ ...fenced, changed: false });
  expect((await test.release(held.acquireId)).results).toEqual([{ released: false, reason: 'fenced' }]);
  const answered = await test.servers.recordProbes(test.pool, ['a']);
  expect(answered).toMatchObject({ states: { a: 'failed' }, unproven: [] });
  expect(await test.server('a', 1)).toMatchObject({ epoch: fenced.epoch, state: 'failed', answers: [] });
  expect(await test.sweep()).toBe(1);
  await test.server('b', 1);
  expect((await test.pools.status(test.pool)).waiters).toBe(0);
  const again = {
    serverId: 'a',
    endpoint: 'http://a',
    dialect: 'vllm' as const,
    maxInflight: 1,
    weight: 1,
    probe: false,
  };
  expect(await test.servers.register(test.pool, again)).toMatchObject({ state: 'ready' });
  expect(await fence()).toMatchObject({ changed: false, state: 'ready' });
  const events = (await test.redis.xrange(`${test.root}:events`, '-', '+')).map(([, fields]) => fields[1]);
  expect(events).toEqual(['server.fenced']);
});

it('removes a drained server after its last lease, though a list still finds it, until it restarts', async () => {
  await discovered('a');
  const worker = await test.worker('w');
  const held = await test.acquire(worker);
  expect(await servers.drain(test.pool, { serverId: 'a', deadlineMs: 60_000 })).toMatchObject({
    state: 'draining',
    inflight: 1,
  });
  const { drainUntilMs } = await servers.drain(test.pool, { serverId: 'a', deadlineMs: 600_000 });
  expect(drainUntilMs! - Date.now()).toBeLessThanOrEqual(60_000);
  expect(await test.acquire(worker)).toMatchObject({ error: 'NO_SERVER_AVAILABLE' });
  expect(await servers.endDrains(test.pool)).toEqual({ removed: [] });
  await test.release(held.acquireId);
  expect(await servers.endDrains(test.pool)).toEqual({ removed: [{ serverId: 'a', leases: 0 }] });
  expect(await states()).toEqual({});
  expect(await discovered('a')).toMatchObject({ state: 'removed', epoch: '' });
  expect(await states()).toEqual({});
  expect(await discovered('a', 'another start')).toMatchObject({ state: 'ready' });
});

it('expires running leases at the deadline of a drain, and grants waiters of the server elsewhere', async () => {
  await test.server('a', 1);
  const worker = await test.worker('w');
  const held = await test.acquire(worker, { sessionId: 's' });
  await test.acquire(worker, waiting('next turn', { sessionId: 's' }));
  await servers.drain(test.pool, { serverId: 'a', deadlineMs: 0 });
  await test.server('b', 5);
  expect(await servers.endDrains(test.pool)).toEqual({ removed: [{ serverId: 'a', leases: 1 }] });
  expect((await test.release(held.acquireId, held.seq)).results).toEqual([{ released: false, reason: 'fenced' }]);
  const granted = [];
  for (let more = true; more;) {
    const page = await test.leases.sweep(test.pool);
    granted.push(...page.answers);
    ({ more } = page);
  }
  expect(granted).toMatchObject([{ acquireId: 'next turn', serverId: 'b' }]);
  expect(await test.workers.sync(test.pool, { ...worker, kind: 'leases' })).toMatchObject({
    items: [expect.anything()],
  });
});

it('ends a drain when the server is uncordoned', async () => {
  await test.server('a', 5);
  await servers.drain(test.pool, { serverId: 'a', deadlineMs: 0 });
  expect(await servers.cordon(test.pool, { serverId: 'a', cordoned: false })).toMatchObject({ state: 'ready' });
  expect(await servers.endDrains(test.pool)).toEqual({ removed: [] });
});

it('quarantines servers of another weight version than the required one until they report it', async () => {
  await test.server('old', 5, { weightVersion: 1 });
  const { epoch } = await test.server('new', 5, { weightVersion: 2 });
  const worker = await test.worker('w');
  await test.redis.hset(`${test.root}:settings`, 'requiredWeightVersion', 2);
  await servers.rescore(test.pool, {});
  expect(await states()).toEqual({ old: 'quarantined', new: 'ready' });
  for (let n = 0; n < 5; n++) expect(await test.acquire(worker)).toMatchObject({ serverId: 'new' });
  await test.acquire(worker, waiting('for old'));
  expect(await servers.update(test.pool, { serverId: 'old', weightVersion: 2 })).toMatchObject({
    state: 'ready',
    answers: [{ acquireId: 'for old', serverId: 'old' }],
  });
  expect((await test.servers.heartbeat(test.pool, { serverId: 'new', epoch, weightVersion: 3 })).states).toEqual({
    new: 'quarantined',
  });
  expect((await test.servers.heartbeat(test.pool, { serverId: 'new', epoch, weightVersion: 2 })).states).toEqual({
    new: 'ready',
  });
});

it('keeps a new start pending, neither silent nor failed, until it describes itself or sends a heartbeat', async () => {
  const probed = (serverId: string) => test.server(serverId, 100, { probe: undefined });
  await test.server('ready');
  const first = await probed('probed');
  expect(first.state).toBe('pending');
  const { epoch } = await probed('heartbeats');
  for (const id of ['x', 'y', 'z']) await probed(id);
  expect(await test.pools.status(test.pool)).toMatchObject({ servers: 6, readyServers: 1 });
  // A repeated registration changes nothing, and many pending servers are no mass failure.
  expect(await probed('probed')).toMatchObject({ epoch: first.epoch, state: 'pending' });
  expect(await test.servers.review(test.pool, LIMITS)).toMatchObject({ watched: 1, silent: 0, held: false });
  await test.acquire(await test.worker('w'), waiting('next', { excludeServers: ['ready'] }));
  // An answer alone proves nothing, because it may be from any program at the address.
  expect(await test.servers.recordProbes(test.pool, ['probed'])).toMatchObject({
    states: { probed: 'pending' },
    unproven: ['probed'],
    answers: [],
  });
  expect(await test.describe('probed')).toMatchObject({
    state: 'ready',
    answers: [{ acquireId: 'next', serverId: 'probed' }],
  });
  await test.servers.heartbeat(test.pool, { serverId: 'heartbeats', epoch });
  expect(await test.pools.status(test.pool)).toMatchObject({ readyServers: 3 });
  // Another start is pending again.
  expect(await test.server('probed', 100, { probe: undefined, instanceId: 'i2' })).toMatchObject({ state: 'pending' });
  expect(await test.server('probed', 100, { instanceId: 'i2' })).toMatchObject({ state: 'ready' });
});

it('changes the description of an instance that registers again, but not its state or last sign', async () => {
  for (const id of ['a', 'b', 'c', 'd', 'e']) await test.server(id, 100, { weightVersion: 1 });
  await silence(10_000, 'a');
  await silence(100_000, 'b');
  const review = () => test.servers.review(test.pool, LIMITS);
  expect(await review()).toMatchObject({ suspected: ['a'], failed: ['b'] });
  const again = (serverId: string) => test.server(serverId, 7, { probe: undefined, weightVersion: 2 });
  expect(await again('a')).toMatchObject({ state: 'suspect' });
  const { epoch, state } = await again('b');
  expect(state).toBe('failed');
  expect(await test.pools.status(test.pool)).toMatchObject({ readyServers: 3 });
  const { servers: list } = await test.servers.list(test.pool);
  expect(list.filter(({ maxInflight }) => maxInflight === 7).map(({ weightVersion }) => weightVersion)).toEqual([2, 2]);
  await silence(100_000, 'a');
  expect(await review()).toMatchObject({ failed: ['a'] });
  // The registration returned the new epoch, with which a heartbeat makes the server ready.
  expect((await test.servers.heartbeat(test.pool, { serverId: 'b', epoch })).states).toEqual({ b: 'ready' });
});

it('does not fail the last server that takes leases, though servers that take none answer', async () => {
  for (const id of ['a', 'b', 'c']) await test.server(id);
  for (const id of ['b', 'c']) await servers.cordon(test.pool, { serverId: id, cordoned: true });
  await silence(100_000, 'a');
  expect(await test.servers.review(test.pool, LIMITS)).toMatchObject({ held: false, failed: [] });
  expect((await states()).a).toBe('suspect');
  const worker = await test.worker('w');
  expect(await test.acquire(worker)).toMatchObject({ serverId: 'a' });
  // When another server takes leases again, the silent one may fail.
  await servers.cordon(test.pool, { serverId: 'b', cordoned: false });
  expect(await test.servers.review(test.pool, LIMITS)).toMatchObject({ failed: ['a'] });
});
