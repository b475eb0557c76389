import type { Epoch } from '@broomwagon/contracts';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseLeaseId } from '../leases/grants';
import { openTestStore } from '../routing/routing-store.fixture';
import { ServerStore } from './server.store';

let test: ReturnType<typeof openTestStore>;
let servers: ServerStore;
beforeEach(() => {
  test = openTestStore();
  servers = new ServerStore(test.runner);
});
afterEach(() => test.close());

const reconcile = (epoch?: Epoch) => servers.reconcile(test.pool, { serverId: 'a', epoch });

it('returns the leases of dead worker epochs at once, and grants their room to waiters', async () => {
  const { epoch } = await test.server('a', 3);
  const [dead, alive] = [await test.worker('dead'), await test.worker('alive')];
  const lost = [await test.acquire(dead), await test.acquire(dead)];
  const kept = await test.acquire(alive);
  const wait = { acquireId: 'waits', requestId: 'r', ...alive, waitMs: 60_000, replyTo: 'inbox' };
  await test.leases.acquire(test.pool, [wait]);
  await servers.reportLoads(test.pool, { reports: [{ serverId: 'a', epoch, running: 1, waiting: 0 }] });
  await test.workers.deregister(test.pool, { workerId: 'dead', workerEpoch: dead.workerEpoch });

  const page = await reconcile(epoch);
  const holders = [{ workerId: 'alive', workerEpoch: alive.workerEpoch, leases: 1 }];
  expect(page).toMatchObject({ leases: 2, returned: 2, holders });
  expect(page).not.toHaveProperty('cursor');
  expect(page).toMatchObject({ engineRunning: 1, engineWaiting: 0, drift: 1 });
  expect(page.answers).toMatchObject([{ acquireId: 'waits', serverId: 'a' }]);
  expect(await reconcile()).toMatchObject({ leases: 2, returned: 0, holders: [{ leases: 2 }] });
  expect((await test.release(lost[0]!.acquireId, lost[0]!.seq)).results[0]).toMatchObject({ released: false });
  expect((await test.release(kept.acquireId, kept.seq)).results[0]).toMatchObject({ released: true });
  expect(await test.sweep()).toBe(0);
});

it('asks a live holder for a sync until the sync starts, and returns none of its leases', async () => {
  await test.server('a');
  await test.server('b');
  const worker = await test.worker('w');
  const other = await test.worker('other');
  const onServer = (by: typeof worker, serverId: string) => test.acquire(by, { boundServerId: serverId });
  const [held, forgotten] = [await onServer(worker, 'a'), await onServer(worker, 'a')];
  await onServer(other, 'b');
  const asked = async (of: typeof worker) => (await test.workers.heartbeat(test.pool, of)).syncAsked;
  expect(await asked(worker)).toBeUndefined();
  expect(await reconcile()).toMatchObject({ leases: 2, returned: 0, holders: [{ workerId: 'w', leases: 2 }] });
  expect(await asked(other)).toBeUndefined();
  // A lost reply must not lose the request for a sync.
  expect([await asked(worker), await asked(worker)]).toEqual([true, true]);

  await test.workers.sync(test.pool, { ...worker, kind: 'attempts' });
  expect(await asked(worker)).toBe(true);
  const { items } = await test.workers.sync(test.pool, { ...worker, kind: 'leases' });
  expect(await asked(worker)).toBeUndefined();
  const known = items.map(({ id }) => parseLeaseId(id)!);
  expect(known.map(({ acquireId }) => acquireId).sort()).toEqual([held.acquireId, forgotten.acquireId].sort());
  for (const { acquireId, seq } of known) if (acquireId !== held.acquireId) await test.release(acquireId, seq);
  expect(await reconcile()).toMatchObject({ leases: 1, returned: 0, holders: [{ workerId: 'w', leases: 1 }] });
});

it('visits every lease page by page', async () => {
  await test.server('a', 10_000);
  const [dead, alive] = [await test.worker('dead'), await test.worker('alive')];
  for (const by of [dead, alive, dead, alive]) {
    const items = Array.from({ length: 100 }, (_, n) => ({
      acquireId: `${n}-${Math.random()}`,
      requestId: 'r',
      ...by,
    }));
    await test.leases.acquire(test.pool, items);
  }
  await test.workers.deregister(test.pool, { workerId: 'dead', workerEpoch: dead.workerEpoch });
  let [pages, returned] = [0, 0];
  for await (const page of servers.pages('reconcile', test.pool, { serverId: 'a' })) {
    returned += page.returned;
    pages++;
  }
  expect(returned).toBe(200);
  expect(pages).toBeGreaterThan(1);
  expect((await reconcile()).leases).toBe(200);
});

it('refuses an unknown server, and another epoch of a server', async () => {
  await expect(reconcile()).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' });
  const { epoch } = await test.server('a');
  await expect(reconcile(epoch + 1)).rejects.toMatchObject({ code: 'FENCED' });
  const page = await reconcile(epoch);
  expect(page).toMatchObject({ leases: 0, holders: [], returned: 0 });
  expect(page).not.toHaveProperty('drift');
});
