import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keysBelow } from '../audit/key-scan';
import { openTestStore, openTestWorker, type TestStore } from './routing-store.fixture';

let test: TestStore;
let worker: Awaited<ReturnType<typeof openTestWorker>>;
beforeEach(async () => {
  test = openTestStore();
  worker = await openTestWorker(test);
});
afterEach(() => test.close());

describe('siblings of a group', () => {
  const sibling = (n: number) => ({ groupId: 'job/g', requestId: `job/g/${n}`, contextTokens: 4_000 });

  it('spread over different servers while these have the lowest load', async () => {
    for (const id of ['a', 'b', 'c', 'd']) await test.server(id);
    const first = await worker.acquire(sibling(0));
    // Other leases make the server of the sibling the next in order.
    const others = [await worker.acquire(), await worker.acquire(), await worker.acquire()];
    await test.release(first.acquireId);
    const again = await worker.acquire(sibling(0));
    for (const { acquireId } of others) await test.release(acquireId);
    expect(new Set([again.serverId, ...(await worker.acquirePlaces(3, (n) => sibling(n + 1)))]).size).toBe(4);
  });

  it('prefer a server without one of them to the one chosen longest ago', async () => {
    await test.server('a');
    await test.server('b');
    const own = await worker.acquire(sibling(0));
    await test.release((await worker.acquire()).acquireId);
    const other = await worker.acquire();
    // Both servers have one lease now, and the server of the sibling was chosen longest ago.
    expect(other.serverId).not.toBe(own.serverId);
    expect(await worker.acquire(sibling(1))).toMatchObject({
      serverId: other.serverId,
      branch: 'group-spread',
      key: 1,
    });
  });

  it('stay together up to the cap under affinity, then spill; auto only with long prompts and no KV pressure', async () => {
    for (const id of ['a', 'b', 'c']) await test.server(id);
    await test.configure({ groupPlacement: 'group-affinity', groupAffinityCap: 3 });
    const places = await worker.acquirePlaces(6, sibling);
    expect(new Set(places.slice(0, 3)).size).toBe(1);
    expect(new Set(places.slice(3)).size).toBe(1);
    expect(places[3]).not.toBe(places[0]);
    expect((await worker.acquire(sibling(7))).branch).not.toBe('group-affinity');

    await test.configure({ groupPlacement: 'auto', groupAffinityCap: 16 });
    expect((await worker.acquire({ ...sibling(8), contextTokens: 2_047 })).branch).not.toBe('group-affinity');
    const together = await worker.acquire(sibling(9));
    expect(together.branch).toBe('group-affinity');
    const { servers: list } = await test.servers.list(test.pool);
    for (const { serverId, epoch } of list) {
      await test.servers.reportLoads(test.pool, {
        reports: [{ serverId, epoch, running: 0, waiting: 0, kvUse: 0.71 }],
      });
    }
    expect((await worker.acquire(sibling(10))).branch).not.toBe('group-affinity');
  });

  it('leave no trace when their leases are returned', async () => {
    await test.server('a');
    for (let n = 0; n < 3; n++) await test.release((await worker.acquire(sibling(n))).acquireId);
    const left = await test.redis.keys(`${test.root}:*`);
    expect(left.filter((key) => /group-leases|servers:tokens|servers:sessions/.test(key))).toEqual([]);
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
      ...worker.holder,
    }));
    await test.leases.acquire(test.pool, items);
  }
  let bytes = 0;
  for await (const keys of keysBelow(test.redis, `${test.root}:`)) {
    for (const key of keys) bytes += Number(await test.redis.memory('USAGE', key, 'SAMPLES', 0));
  }
  expect(bytes / leases).toBeLessThan(700);
});
