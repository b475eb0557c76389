import type { Epoch } from '@broomwagon/contracts';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { InspectionStore } from '../inspection/inspection.store';
import { openTestStore } from '../routing/routing-store.fixture';
import { ServerStore } from '../servers/server.store';

let test: ReturnType<typeof openTestStore>;
let worker: { workerId: string; workerEpoch: Epoch };
beforeEach(async () => {
  test = openTestStore();
  worker = await test.worker('w');
});
afterEach(() => test.close());

let transfers = 0;
const transfer = (acquireId: string, targetServerId: string, more: object = {}) =>
  test.leases.transfer(test.pool, { transferId: `t${++transfers}`, acquireId, targetServerId, ...worker, ...more });
const inflight = async () => {
  const { servers } = await test.servers.list(test.pool);
  return Object.fromEntries(servers.map(({ serverId, inflight: leases }) => [serverId, leases]));
};

it('moves a lease with its session, keeps its id, and a release ends it exactly once', async () => {
  await test.server('a');
  const lease = await test.acquire(worker, { attempt: '2-a', sessionId: 's', groupId: 'g', contextTokens: 1_000 });
  await test.server('b');
  const { granted, servers } = await transfer(lease.acquireId, 'b', { seq: lease.seq });
  expect(granted).toMatchObject({ seq: lease.seq, serverId: 'b', branch: 'transferred', inflight: 1 });
  const { leases } = await new InspectionStore(test.runner).leases(test.pool, {});
  expect(leases).toMatchObject([{ serverId: 'b', attempt: '2-a' }]);
  expect(servers.b).toMatchObject({ endpoint: 'http://b:8000' });
  expect(await inflight()).toEqual({ a: 0, b: 1 });
  expect(await test.acquire(worker, { sessionId: 's' })).toMatchObject({ serverId: 'b', branch: 'sticky-hit' });
  expect((await test.release(lease.acquireId, lease.seq)).results).toEqual([{ released: true, reason: 'released' }]);
  expect((await test.release(lease.acquireId)).results[0]).toMatchObject({ reason: 'already-released' });
  expect(await inflight()).toEqual({ a: 0, b: 1 });
});

it('gives the freed room to a parked acquire, and answers a repeat the same without a second move', async () => {
  await test.server('a', 1);
  const lease = await test.acquire(worker);
  await test.acquire(worker, { acquireId: 'parked', waitMs: 30_000, replyTo: 'inbox' });
  await test.server('b', 1, { weightVersion: 0 });
  // Server b has no room, because it took the parked acquire.
  await expect(transfer(lease.acquireId, 'b')).rejects.toMatchObject({ code: 'SERVER_FULL', retryable: true });
  await test.acquire(worker, { acquireId: 'again', waitMs: 30_000, replyTo: 'inbox' });
  await test.release('parked');
  expect(await inflight()).toEqual({ a: 1, b: 1 });
  await test.release('again');
  await test.acquire(worker, { acquireId: 'fixed', excludeServers: ['b'], waitMs: 30_000, replyTo: 'inbox' });
  const first = await transfer(lease.acquireId, 'b', { transferId: 'once' });
  expect(first.answers).toEqual([expect.objectContaining({ acquireId: 'fixed', serverId: 'a' })]);
  const { granted, servers } = first;
  expect(await transfer(lease.acquireId, 'b', { transferId: 'once' })).toEqual({ granted, servers });
  await expect(transfer(lease.acquireId, 'a', { transferId: 'once' })).rejects.toMatchObject({ field: 'transferId' });
  expect(await inflight()).toEqual({ a: 1, b: 1 });
});

it('refuses an impossible transfer with a reason, and changes nothing', async () => {
  const servers = new ServerStore(test.runner);
  const { epoch } = await test.server('a', 100, { weightVersion: 7 });
  const lease = await test.acquire(worker, { weightVersion: 7, sessionId: 's' });
  for (const id of ['cordoned', 'draining', 'old', 'other']) await test.server(id, 100, { weightVersion: 7 });
  await servers.cordon(test.pool, { serverId: 'cordoned', cordoned: true });
  await servers.drain(test.pool, { serverId: 'draining', deadlineMs: 60_000 });
  await servers.update(test.pool, { serverId: 'old', weightVersion: 6 });
  const thief = await test.worker('thief');
  const refusals: [() => Promise<unknown>, object][] = [
    [() => transfer('nobody', 'other'), { code: 'LEASE_NOT_FOUND' }],
    [() => transfer(lease.acquireId, 'other', { seq: lease.seq + 1 }), { code: 'LEASE_NOT_FOUND' }],
    [() => transfer(lease.acquireId, 'other', thief), { code: 'LEASE_NOT_FOUND' }],
    [() => transfer(lease.acquireId, 'other', { workerEpoch: 'e99' }), { code: 'FENCED', field: 'workerEpoch' }],
    [() => transfer(lease.acquireId, 'other', { targetEpoch: epoch }), { code: 'FENCED', field: 'targetEpoch' }],
    [() => transfer(lease.acquireId, 'a'), { code: 'VALIDATION_FAILED', field: 'targetServerId' }],
    [() => transfer(lease.acquireId, 'of-another-pool'), { code: 'SERVER_NOT_FOUND' }],
    [() => transfer(lease.acquireId, 'cordoned'), { code: 'SERVER_NOT_READY' }],
    [
      () => transfer(lease.acquireId, 'draining'),
      { code: 'SERVER_NOT_READY', message: expect.stringContaining('draining') },
    ],
    [() => transfer(lease.acquireId, 'old'), { code: 'SERVER_UNSUITABLE', field: 'weightVersion' }],
  ];
  for (const [ask, error] of refusals) {
    await expect(ask()).rejects.toMatchObject(error);
  }
  await test.pools.pause(test.pool, { paused: true });
  const paused = { code: 'POOL_PAUSED', retryAfterMs: 250, details: { reason: 'paused' } };
  await expect(transfer(lease.acquireId, 'other')).rejects.toMatchObject(paused);
  await test.pools.pause(test.pool, { paused: false });
  expect(await inflight()).toMatchObject({ a: 1, other: 0, old: 0 });
  expect(await test.acquire(worker, { sessionId: 's', weightVersion: 7 })).toMatchObject({ serverId: 'a' });
});

it('grants an acquire on the server it names if possible, else on another one, which the branch shows', async () => {
  await test.server('a', 1);
  const { epoch } = await test.server('b', 1);
  const bound = { boundServerId: 'b', boundServerEpoch: epoch, sessionId: 's' };
  expect(await test.acquire(worker, bound)).toMatchObject({ serverId: 'b', branch: 'bound' });
  expect(await test.acquire(worker, { boundServerId: 'b' })).toMatchObject({
    serverId: 'a',
    branch: 'bound-unavailable',
    via: 'least-loaded',
  });
  await test.server('c', 2);
  expect(await test.acquire(worker, { boundServerId: 'c', boundServerEpoch: epoch })).toMatchObject({
    serverId: 'c',
    branch: 'bound-unavailable',
  });
});
