import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore, type TestStore } from '../routing/routing-store.fixture';

let test: TestStore;
beforeEach(() => {
  test = openTestStore();
});
afterEach(() => test.close());

const list = (listedAs: string, instanceId = 'unknown') =>
  test.server('a', 10, { discovered: true, listedAs, instanceId, probe: undefined });
const drain = (deadlineMs: number, listedAs?: string) =>
  test.servers.drain(test.pool, { serverId: 'a', deadlineMs, listedAs });
const withhold = (listedAs: string) => test.servers.withhold(test.pool, { serverId: 'a', listedAs, withheld: true });

it('gives a withheld server no new leases, but keeps running ones, until the engine is listed again', async () => {
  const { epoch } = await list('pod-1');
  const worker = await test.worker('w');
  await test.acquire(worker);
  expect(await withhold('pod-1')).toMatchObject({ state: 'cordoned', inflight: 1 });
  await test.servers.recordProbes(test.pool, ['a']);
  await test.servers.cordon(test.pool, { serverId: 'a', cordoned: false });
  expect(await test.acquire(worker)).toMatchObject({ error: 'NO_SERVER_AVAILABLE' });
  expect((await test.servers.list(test.pool)).servers).toMatchObject([
    { withheld: true, listedAs: 'pod-1', inflight: 1 },
  ]);
  expect(await list('pod-1')).toMatchObject({ state: 'ready', epoch });
  expect(await test.acquire(worker)).toMatchObject({ serverId: 'a' });
});

it('takes a successor at the same address as soon as it is listed, though neither names its start', async () => {
  const { epoch } = await list('pod-1');
  await drain(60_000, 'pod-1');
  // The ending pod and its successor are listed at the same time.
  const successor = await list('pod-2');
  expect(successor.state).toBe('ready');
  expect(successor.epoch).not.toBe(epoch);
  // Late changes for the ended pod are refused.
  await expect(drain(0, 'pod-1')).rejects.toMatchObject({ code: 'FENCED' });
  await expect(withhold('pod-1')).rejects.toMatchObject({ code: 'FENCED' });
  await drain(0, 'pod-2');
  expect((await test.servers.endDrains(test.pool)).removed).toMatchObject([{ serverId: 'a' }]);
  expect(await list('pod-3')).toMatchObject({ state: 'ready' });
});

it('ends the drain of a pod that its list has drained and lists as ready again, and keeps a drain by name', async () => {
  const { epoch } = await list('pod-1');
  const worker = await test.worker('w');
  await test.acquire(worker);
  await drain(60_000, 'pod-1');
  expect(await list('pod-1')).toMatchObject({ state: 'ready', epoch });
  expect(await test.acquire(worker)).toMatchObject({ serverId: 'a' });
  await drain(60_000);
  expect(await list('pod-1')).toMatchObject({ state: 'draining' });
});

it('takes back a pod that its list has drained, but not a pod that was drained by name', async () => {
  await list('pod-1');
  await drain(0, 'pod-1');
  await test.servers.endDrains(test.pool);
  expect(await list('pod-1')).toMatchObject({ state: 'ready' });
  await drain(0);
  expect(await list('pod-1')).toMatchObject({ state: 'draining' });
  await test.servers.endDrains(test.pool);
  expect(await list('pod-1')).toMatchObject({ state: 'removed' });
  expect(await list('pod-2')).toMatchObject({ state: 'ready' });
});
