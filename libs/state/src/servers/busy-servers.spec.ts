import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore, openTestWorker } from '../routing/routing-store.fixture';

const LONG_MS = 250_000;
let test: ReturnType<typeof openTestStore>;
let worker: Awaited<ReturnType<typeof openTestWorker>>;
beforeEach(async () => {
  test = openTestStore();
  worker = await openTestWorker(test);
});
afterEach(() => test.close());

/** Ends calls of a server in one transition. */
const refuse = (calls: { acquireId: string }[], retryAfterMs?: number) =>
  test.leases.release(
    test.pool,
    calls.map(({ acquireId }) => ({ acquireId, outcome: 'busy' as const, retryAfterMs })),
  );
const acquireOn = (boundServerId: string) => worker.acquire({ boundServerId });
const isPaused = async (serverId: string) => {
  const { branch, acquireId } = await acquireOn(serverId);
  await test.release(acquireId);
  return branch !== 'bound';
};
const readStatus = async (serverId: string) =>
  (await test.servers.list(test.pool, { serverId, cursor: '0' })).servers[0]!;

it('gives a busy server no new leases for the time that the engine names, and keeps its running leases', async () => {
  for (const id of ['a', 'b']) await test.server(id);
  const running = await acquireOn('a');
  const refused = await acquireOn('a');
  await refuse([refused], LONG_MS);
  expect(await isPaused('a')).toBe(true);
  expect(await isPaused('b')).toBe(false);
  const status = await readStatus('a');
  expect(status).toMatchObject({ state: 'ready', inflight: 1 });
  expect(status.busyUntilMs).toBeGreaterThan(0);
  // Probes, a repeated registration and the end of an older call do not shorten the time.
  await test.servers.recordProbes(test.pool, ['a']);
  await test.release(running.acquireId, undefined, 'finished');
  await test.servers.warm(test.pool);
  expect(await isPaused('a')).toBe(true);
});

it('lets acquires wait for a busy server like for a full one, and serves them when its time is over', async () => {
  await test.server('a');
  await refuse([await acquireOn('a')], 1);
  const waiting = { requestId: 'r', ...worker.holder };
  expect(await worker.acquire()).toMatchObject({ error: 'SERVERS_FULL', reason: 'servers-full' });
  await test.leases.acquire(test.pool, [{ acquireId: 'waiting', replyTo: 'inbox', waitMs: 30_000, ...waiting }]);
  await expect
    .poll(async () => (await test.servers.warm(test.pool)).answers)
    .toMatchObject([{ acquireId: 'waiting', serverId: 'a', branch: 'waited' }]);
});

it('gives a busy server one trial lease after its time, and others once the trial has not failed for a while', async () => {
  await test.server('a');
  await refuse([await acquireOn('a')], 1);
  await expect.poll(() => isPaused('a')).toBe(false);
  // The poll was the trial. No other lease is granted until the time of the trial is over.
  await expect.poll(async () => (await test.servers.warm(test.pool)).warming).toBe(0);
  expect(await readStatus('a')).not.toHaveProperty('busyUntilMs');
  for (let n = 0; n < 3; n++) expect(await acquireOn('a')).toMatchObject({ branch: 'bound' });
});

it('gives a busy server only one of the leases that are granted together after its time', async () => {
  for (const id of ['a', 'b']) await test.server(id);
  await refuse([await acquireOn('a')], 1);
  await expect.poll(async () => (await test.servers.warm(test.pool)).warming).toBe(0);
  const items = Array.from({ length: 8 }, (_, n) => ({ acquireId: `n${n}`, requestId: `r${n}`, ...worker.holder }));
  await test.leases.acquire(test.pool, items);
  expect([(await readStatus('a')).inflight, (await readStatus('b')).inflight]).toEqual([1, 7]);
});

it('counts calls that a busy server refuses together once', async () => {
  await test.server('a');
  const together = [await acquireOn('a'), await acquireOn('a'), await acquireOn('a')];
  await refuse(together);
  const [seconds] = await test.redis.time();
  expect((await readStatus('a')).busyUntilMs).toBeLessThan((Number(seconds) + 2) * 1_000);
});

it('avoids a server for a request that it has just failed, while another server can take the lease', async () => {
  for (const id of ['a', 'b']) await test.server(id);
  for (const avoidServers of [['a'], ['a', 'unknown']]) {
    expect(await worker.acquirePlaces(3, () => ({ avoidServers }))).toEqual(['b', 'b', 'b']);
  }
  expect(await worker.acquire({ avoidServers: ['a'], boundServerId: 'a' })).toMatchObject({ serverId: 'b' });
  expect(await worker.acquire({ avoidServers: ['a', 'b'] })).not.toHaveProperty('error');
  expect(await worker.acquire({ sessionId: 's', boundServerId: 'a' })).toMatchObject({ serverId: 'a' });
  expect(await worker.acquire({ sessionId: 's', avoidServers: ['a'] })).toMatchObject({ serverId: 'b' });
  await test.servers.remove(test.pool, { serverId: 'b' });
  expect(await worker.acquire({ avoidServers: ['a'] })).toMatchObject({ serverId: 'a' });
});
