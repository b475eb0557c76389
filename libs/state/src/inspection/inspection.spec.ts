import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore } from '../routing/routing-store.fixture';
import { InspectionStore } from './inspection.store';

let test: ReturnType<typeof openTestStore>;
let inspection: InspectionStore;
beforeEach(() => {
  test = openTestStore();
  inspection = new InspectionStore(test.runner);
});
afterEach(() => test.close());

it('lists the live workers with the numbers of their leases and attempts, the longest silent first', async () => {
  await test.server('a');
  const [idle, busy] = [await test.worker('idle'), await test.worker('busy', 5_000)];
  await test.acquire(busy);
  await test.acquire(busy);
  await test.redis.zincrby(`${test.root}:workers`, -3_000, 'busy');
  await test.workers.deregister(test.pool, await test.worker('gone'));
  const { workers, cursor } = await inspection.workers(test.pool);
  expect(cursor).toBeUndefined();
  expect(workers).toEqual([
    expect.objectContaining({ ...busy, ttlMs: 5_000, leases: 2, attempts: 0 }),
    expect.objectContaining({ ...idle, ttlMs: 60_000, leases: 0, attempts: 0 }),
  ]);
  expect(workers[0]!.heartbeatAgeMs).toBeGreaterThanOrEqual(3_000);
  expect(workers[1]!.heartbeatAgeMs).toBeLessThan(3_000);
});

it('lists the leases of a server, of a worker and of the pool', async () => {
  await test.server('a', 2);
  await test.server('b', 2);
  const [one, other] = [await test.worker('one'), await test.worker('other')];
  const leases: { acquireId: string; seq: number; serverId: string }[] = [];
  for (const worker of [one, one, other]) {
    leases.push({
      ...(await test.acquire(worker, { requestId: `r${leases.length}`, attempt: `${leases.length}-a`, groupId: 'g' })),
      ...worker,
    });
  }
  const seen = async (selector: object) =>
    (await inspection.leases(test.pool, selector)).leases.map(({ leaseId }) => leaseId).toSorted();
  const listIds = (some: typeof leases) => some.map(({ seq, acquireId }) => `${seq}.${acquireId}`).toSorted();
  expect(await seen({})).toEqual(listIds(leases));
  expect(await seen({ workerId: 'one' })).toEqual(listIds(leases.slice(0, 2)));
  expect(await seen({ serverId: 'a' })).toEqual(listIds(leases.filter(({ serverId }) => serverId === 'a')));
  expect((await inspection.leases(test.pool, { workerId: 'other' })).leases).toEqual([
    {
      leaseId: listIds(leases.slice(2))[0],
      requestId: 'r2',
      attempt: '2-a',
      serverId: leases[2]!.serverId,
      serverEpoch: expect.any(String) as string,
      ...other,
      groupId: 'g',
      ageMs: expect.any(Number) as number,
    },
  ]);
  await expect(inspection.leases(test.pool, { serverId: 'c' })).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
  await expect(inspection.leases(test.pool, { workerId: 'c' })).rejects.toMatchObject({ code: 'WORKER_NOT_FOUND' });
});

it('shows one lease, while it lives', async () => {
  await test.server('a');
  const worker = await test.worker('w');
  const { acquireId, seq } = await test.acquire(worker, { requestId: 'r' });
  const leaseId = `${seq}.${acquireId}`;
  const shown = { leaseId, requestId: 'r', serverId: 'a', ...worker };
  expect(await inspection.lease(test.pool, leaseId)).toMatchObject(shown);
  for (const other of [`${seq + 1}.${acquireId}`, `${seq}.x`, acquireId]) {
    await expect(inspection.lease(test.pool, other)).rejects.toMatchObject({ code: 'LEASE_NOT_FOUND' });
  }
  await test.leases.release(test.pool, [{ acquireId }]);
  await expect(inspection.lease(test.pool, leaseId)).rejects.toMatchObject({ code: 'LEASE_NOT_FOUND' });
});

it('pages through all leases of a pool', async () => {
  await test.server('a', 400);
  const worker = await test.worker('w');
  const items = Array.from({ length: 300 }, (_, n) => ({ acquireId: `a${n}`, requestId: 'r', ...worker }));
  for (let from = 0; from < 300; from += 100) await test.leases.acquire(test.pool, items.slice(from, from + 100));
  for (const selector of [{}, { serverId: 'a' }, { workerId: 'w' }]) {
    const seen = new Set<string>();
    for (let cursor: string | undefined = '0'; cursor !== undefined;) {
      const page = await inspection.leases(test.pool, { ...selector, cursor });
      for (const { leaseId } of page.leases) seen.add(leaseId);
      ({ cursor } = page);
    }
    expect(seen.size).toBe(300);
  }
});
