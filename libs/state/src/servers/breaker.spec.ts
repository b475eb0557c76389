import type { Epoch } from '@broomwagon/contracts';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PoolStore } from '../pools/pool.store';
import { openTestStore } from '../routing/routing-store.fixture';

let test: ReturnType<typeof openTestStore>;
let worker: { workerId: string; workerEpoch: Epoch };
beforeEach(async () => {
  test = openTestStore();
  worker = await test.worker('w');
});
afterEach(() => test.close());

const configure = (breakerOpenMs: number) =>
  new PoolStore(test.runner).configure(test.pool, { breakerFailures: 3, breakerOpenMs });
/** Makes one call on a server. @returns whether its outcome made the breaker open */
async function call(serverId: string, outcome?: 'finished' | 'failed') {
  const lease = await test.acquire(worker, { boundServerId: serverId });
  expect(lease).toMatchObject({ serverId, branch: 'bound' });
  return (await test.release(lease.acquireId, lease.seq, outcome)).broken !== undefined;
}
const probe = async (serverId: string) => (await test.servers.recordProbes(test.pool, [serverId])).states[serverId];

it('makes a server suspect whose calls fail one after the other, for a while, though it answers probes', async () => {
  for (const id of ['a', 'b', 'c']) await test.server(id);
  await configure(60_000);
  const outcomes = ['failed', 'failed', 'finished', 'failed', undefined, 'failed', 'failed'] as const;
  const broken = [];
  for (const outcome of outcomes) broken.push(await call('a', outcome));
  expect(broken).toEqual([false, false, false, false, false, false, true]);
  expect(await test.acquire(worker, { boundServerId: 'a' })).toMatchObject({ branch: 'bound-unavailable' });
  expect(await probe('a')).toBe('suspect');
  expect(await test.server('a')).toMatchObject({ state: 'suspect' });
  // Two of three servers are left. Without another one, fewer than half would be.
  for (let n = 0; n < 5; n++) expect(await call('b', 'failed')).toBe(false);
  expect(await probe('b')).toBe('ready');
});

it('tries a server again after the break: one more failure opens the breaker, a finished call resets it', async () => {
  await test.server('a');
  await test.server('b');
  await configure(100);
  for (let n = 0; n < 3; n++) await call('a', 'failed');
  await expect.poll(() => probe('a')).toBe('ready');
  expect(await call('a', 'failed')).toBe(true);
  await expect.poll(() => probe('a')).toBe('ready');
  await call('a', 'finished');
  expect(await call('a', 'failed')).toBe(false);
});

it('has the breaker on by default, off with 0, and never opens it for the last server', async () => {
  await test.server('a');
  await test.server('b');
  const broken = [];
  for (let n = 0; n < 5; n++) broken.push(await call('a', 'failed'));
  expect(broken).toEqual([false, false, false, false, true]);
  for (let n = 0; n < 9; n++) expect(await call('b', 'failed')).toBe(false);
  await new PoolStore(test.runner).configure(test.pool, { breakerFailures: 0 });
  await test.server('c');
  for (let n = 0; n < 9; n++) expect(await call('c', 'failed')).toBe(false);
});
