import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { inject } from '../lab/engine-simulator/src/test-engine';
import { Gateway } from './system/gateway';
import { liveRows, ServiceBench } from './system/service-bench';

/** Aborts that arrive at the engine before the request that they are to stop. */
let bench: ServiceBench;

beforeAll(async () => {
  bench = await ServiceBench.open();
});
afterAll(() => bench.close());
beforeEach(async () => {
  await bench.begin();
  await bench.register();
  await inject(bench.engine.url, { kind: 'late' });
});
afterEach(() => bench.end());

async function isOnItsWay(): Promise<void> {
  await expect.poll(async () => (await bench.engineState()).late).toBe(1);
}

/** Does not wait: a stop that was reported has happened on the engine. */
async function hasStopped(): Promise<void> {
  const state = await bench.engineState();
  expect([liveRows(state), state.requests.received]).toEqual([[], 1]);
}

it('a worker confirms an abort when the engine has stopped the request', async () => {
  await bench.submit(1, 1);
  await bench.startWorker();
  await isOnItsWay();
  const body = { abortId: 'early', requestIds: ['job/g0/0'], waitMs: 10_000 };
  const { results } = await bench.client.call(bench.pool, 'request.abort', body, { timeoutMs: 20_000 });
  expect(results).toMatchObject([{ requestId: 'job/g0/0', outcome: 'aborted' }]);
  await hasStopped();
});

it('a gateway ends an aborted response when the engine has stopped the request', async () => {
  const gateway = await Gateway.start(bench.prefix, bench.pool);
  const request = { rid: 'early', input_ids: [1], sampling_params: { max_new_tokens: 8_000 } };
  const reply = gateway.post('/generate', request);
  await isOnItsWay();
  await gateway.post('/abort_request', { rid: 'early' });
  expect((await reply).body.meta_info.finish_reason.type).toBe('abort');
  await hasStopped();
  await gateway.close();
});
