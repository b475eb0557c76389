import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore } from '../routing/routing-store.fixture';

let test: ReturnType<typeof openTestStore>;
beforeEach(() => {
  test = openTestStore();
});
afterEach(() => test.close());

it('lets time pass after the clock of Redis was set back by an hour, without a step back', async () => {
  const { workers, waiters, pool } = test;
  const worker = await test.worker('w');
  const serverTimeMs = async () =>
    (await workers.heartbeat(pool, { workerId: 'w', workerEpoch: worker.workerEpoch })).serverTimeMs;
  const before = (await serverTimeMs()) + 3_600_000;
  await test.redis.hset(`${test.root}:meta`, 'clockMs', before);
  const after = await serverTimeMs();
  expect(after).toBe(before);
  await test.acquire(worker, { replyTo: 'inbox', waitMs: 20 });
  await expect.poll(async () => (await waiters.expire(pool)).answers).toMatchObject([{ replyTo: 'inbox' }]);
  expect((await serverTimeMs()) - before).toBeLessThan(60_000);
  expect((await serverTimeMs()) - before).toBeGreaterThanOrEqual(20);
});
