import { afterAll, beforeAll, expect, it } from 'vitest';
import { ServiceBench } from './system/service-bench';

/** Wait of the calls, far longer than the deletion takes: the deletion answers them, and not their deadline. */
const WAIT_MS = 30_000;

let bench: ServiceBench;
beforeAll(async () => {
  bench = await ServiceBench.open({}, 1);
}, 60_000);
afterAll(() => bench.close());

it('pool.delete with force answers waiting callers, fences users of the pool, and leaves nothing', async () => {
  await bench.begin();
  const { pool, job } = bench;
  const call: typeof bench.client.call = (...args) => bench.client.call(...args);
  await bench.register({ maxInflight: 1 });
  await bench.openRound(1);
  const registration = { workerId: 'w', registrationId: 'r', ttlMs: 120_000 };
  const worker = { workerId: 'w', workerEpoch: (await call(pool, 'worker.register', registration)).workerEpoch };
  const acquire = { requestId: 'job/g/0', ...worker };
  await call(pool, 'lb.acquire', { ...acquire, acquireId: 'held' });

  const parked = { waitMs: WAIT_MS };
  const begunMs = performance.now();
  const answers = Promise.allSettled([
    bench.client.call(pool, 'lb.acquire', { ...acquire, acquireId: 'parked', ...parked }, { timeoutMs: 2 * WAIT_MS }),
    bench.client.call(
      pool,
      'request.claim',
      { claimId: 'c', ...worker, max: 1, ...parked },
      { timeoutMs: 2 * WAIT_MS },
    ),
  ]);
  // A deletion without force is refused, with the uses of the pool.
  const refusal = () => call(pool, 'pool.delete', {}).catch(({ code, details }) => ({ code, ...details }));
  const uses = [
    'servers that take leases',
    'live workers',
    'leases',
    'waiting acquires',
    'waiting claims',
    'open rounds',
  ];
  await expect.poll(refusal).toEqual({ code: 'POOL_IN_USE', inUse: uses });
  expect(await call(pool, 'pool.delete', { force: true })).toEqual({ pool, jobs: 1 });
  const [acquired, claimed] = await answers;
  expect(performance.now() - begunMs).toBeLessThan(WAIT_MS);
  expect(acquired).toMatchObject({ status: 'rejected', reason: { code: 'WAIT_TIMEOUT' } });
  expect(claimed).toEqual({ status: 'fulfilled', value: { claims: [] } });

  await expect(call(pool, 'lb.acquire', { ...acquire, acquireId: 'late' })).rejects.toMatchObject({
    code: 'WORKER_NOT_FOUND',
  });
  await expect(call(pool, 'job.status', { job })).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
  expect(await call(pool, 'lb.status', {})).toMatchObject({ servers: 0, workers: 0, leases: 0, waiters: 0 });
  expect(await bench.findings()).toEqual([]);
  await call(pool, 'worker.register', { ...registration, registrationId: 'again' });
  await bench.engine.close();
});
