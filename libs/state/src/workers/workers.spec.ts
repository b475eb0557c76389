import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseLeaseId } from '../leases/grants';
import { openTestStore } from '../routing/routing-store.fixture';

const LONG_GAP_MS = 600_000;
let test: ReturnType<typeof openTestStore>;
beforeEach(() => {
  test = openTestStore();
});
afterEach(() => test.close());

/** Puts the end of the worker's time to live into the past, as if it had been silent. */
const silence = (workerId: string) => test.redis.zadd(`${test.root}:workers`, 1, workerId);

it('gives one epoch to a repeated registration and a later one to the next, which fences the first', async () => {
  const register = (registrationId: string) =>
    test.workers.register(test.pool, { workerId: 'w', registrationId, ttlMs: 5_000 });
  const first = await register('one');
  expect(await register('one')).toMatchObject({ workerEpoch: first.workerEpoch, ttlMs: 5_000 });
  const second = await register('two');
  expect(second.workerEpoch).not.toBe(first.workerEpoch);
  await expect(register('one'), 'a repeat that arrives late').rejects.toMatchObject({ code: 'FENCED' });
  expect(await register('two')).toMatchObject({ workerEpoch: second.workerEpoch });
  await test.server('a');
  expect(await test.acquire({ workerId: 'w', workerEpoch: first.workerEpoch })).toMatchObject({ error: 'FENCED' });
  const beat = test.workers.heartbeat(test.pool, { workerId: 'w', workerEpoch: first.workerEpoch });
  await expect(beat).rejects.toMatchObject({ code: 'FENCED' });
  expect(await test.workers.deregister(test.pool, { workerId: 'w', workerEpoch: first.workerEpoch })).toEqual({
    deregistered: false,
  });
});

it('gives different errors to a worker that was never registered and to an expired worker epoch', async () => {
  const { workerEpoch } = await test.worker('w');
  await test.workers.deregister(test.pool, { workerId: 'w', workerEpoch });
  const calls = (workerId: string) => [
    test.workers.heartbeat(test.pool, { workerId, workerEpoch }),
    test.workers.sync(test.pool, { workerId, workerEpoch, kind: 'leases' }),
    test.leases.transfer(test.pool, {
      transferId: `t-${workerId}`,
      acquireId: 'a',
      workerId,
      workerEpoch,
      targetServerId: 'x',
    }),
  ];
  for (const call of calls('w')) await expect(call).rejects.toMatchObject({ code: 'FENCED', field: 'workerEpoch' });
  for (const call of calls('v'))
    await expect(call).rejects.toMatchObject({ code: 'WORKER_NOT_FOUND', field: 'workerId' });
  expect(await test.acquire({ workerId: 'w', workerEpoch })).toMatchObject({ error: 'FENCED' });
  expect(await test.acquire({ workerId: 'v', workerEpoch })).toMatchObject({ error: 'WORKER_NOT_FOUND' });
  expect(await test.leases.cancel(test.pool, { workerId: 'w', workerEpoch, acquireId: 'a' })).toMatchObject({
    reason: 'fenced',
  });
  const unknown = { code: 'WORKER_NOT_FOUND' };
  await expect(test.leases.cancel(test.pool, { workerId: 'v', workerEpoch, acquireId: 'a' })).rejects.toMatchObject(
    unknown,
  );
  await expect(test.workers.deregister(test.pool, { workerId: 'v', workerEpoch })).rejects.toMatchObject(unknown);
});

it('returns the count and digest of leases to a heartbeat, and their ids to a sync', async () => {
  await test.server('a');
  const worker = await test.worker('w');
  const held = [];
  for (let n = 0; n < 5; n++) held.push(await test.acquire(worker));
  const gone = held.pop()!;
  await test.release(gone.acquireId);
  const digest = held.reduce((sum, { seq }) => sum + seq, 0);
  const beat = await test.workers.heartbeat(test.pool, { workerId: 'w', workerEpoch: worker.workerEpoch });
  expect(beat).toMatchObject({ leaseCount: 4, leaseDigest: digest, attemptCount: 0 });
  const { items, cursor } = await test.workers.sync(test.pool, { ...worker, kind: 'leases' });
  expect(cursor).toBeUndefined();
  expect(items.map(({ id }) => parseLeaseId(id)?.acquireId).sort()).toEqual(held.map((one) => one.acquireId).sort());
});

it('returns the leases of a dead worker in pages, all of them, and only its own', async () => {
  await test.server('a', 10_000);
  const [dead, alive] = [await test.worker('dead'), await test.worker('alive')];
  for (let page = 0; page < 3; page++) {
    const items = Array.from({ length: 100 }, (_, n) => ({ acquireId: `d${page}-${n}`, requestId: 'r', ...dead }));
    await test.leases.acquire(test.pool, items);
  }
  const kept = await test.acquire(alive);
  await silence('dead');
  expect(await test.workers.expire(test.pool, { gapMs: LONG_GAP_MS })).toEqual({ expired: ['dead'], more: false });
  // The leases expire at once and are returned page by page.
  expect((await test.release('d0-0')).results[0]).toEqual({ released: false, reason: 'fenced' });
  expect((await test.leases.sweep(test.pool)).returned).toBe(64);
  expect(await test.sweep()).toBe(236);
  expect(await test.pools.status(test.pool)).toMatchObject({ leases: 1, expiredEpochs: 0, workers: 1 });
  expect((await test.release(kept.acquireId, kept.seq)).results[0]).toEqual({ released: true, reason: 'released' });
});

it('leaves nothing behind when all workers and servers are gone', async () => {
  await test.server('a');
  const worker = await test.worker('w');
  await test.acquire(worker, { sessionId: 's' });
  await test.workers.deregister(test.pool, { workerId: 'w', workerEpoch: worker.workerEpoch });
  await test.servers.remove(test.pool, { serverId: 'a' });
  await test.sweep();
  await test.sessions.evict(test.pool, { idleMs: 0 });
  const left = await test.redis.keys(`${test.root}:*`);
  // The trainer-coordinator returns the attempts of the epoch. The former worker is forgotten after a day.
  expect(await test.redis.ttl(`${test.root}:former-worker:w`)).toBeGreaterThan(86_000);
  // The clock of weights stays, so that no salt of a prefix cache is used again.
  // The hash of the leases of requests has only the field that makes Redis store it as a table.
  expect(left.sort()).toEqual([
    `${test.root}:expired:attempts`,
    `${test.root}:former-worker:w`,
    `${test.root}:leases:requests`,
    `${test.root}:meta`,
    `${test.root}:weights`,
  ]);
});

it('expires no worker for one time to live when many would expire together, and expires them afterwards', async () => {
  for (const id of ['a', 'b', 'c', 'd']) await test.worker(id, 500);
  await Promise.all([silence('a'), silence('b')]);
  expect(await test.workers.expire(test.pool, { gapMs: LONG_GAP_MS })).toEqual({
    expired: [],
    held: 'mass',
    more: false,
  });
  // One worker sends a heartbeat again, and the other stays silent.
  await test.redis.zadd(
    `${test.root}:workers`,
    Date.now() + 60_000,
    'a',
    Date.now() + 60_000,
    'c',
    Date.now() + 60_000,
    'd',
  );
  await expect.poll(async () => (await test.workers.expire(test.pool, { gapMs: LONG_GAP_MS })).expired).toEqual(['b']);
});

it('expires no worker for one time to live after an outage', async () => {
  const { workerEpoch } = await test.worker('w', 2_000);
  await test.workers.expire(test.pool, { gapMs: LONG_GAP_MS });
  await silence('w');
  await test.redis.hset(`${test.root}:meta`, 'reaperTickMs', Date.now() - LONG_GAP_MS - 60_000);
  expect(await test.workers.expire(test.pool, { gapMs: LONG_GAP_MS })).toMatchObject({ expired: [], held: 'outage' });
  await test.workers.heartbeat(test.pool, { workerId: 'w', workerEpoch });
  await expect.poll(async () => (await test.workers.expire(test.pool, { gapMs: LONG_GAP_MS })).expired).toEqual(['w']);
});
