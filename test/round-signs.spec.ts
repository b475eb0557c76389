import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { inject, startEngine } from '../lab/engine-simulator/src/test-engine';
import { ServiceBench } from './system/service-bench';

const TOKENS = 40;
const lengths = { name: 'test', getLength: () => TOKENS };

let bench: ServiceBench;
let second: Awaited<ReturnType<typeof startEngine>>;
beforeAll(async () => {
  bench = await ServiceBench.open({}, 1, { probeIntervalMs: 100, serverSilentAfterMs: 1_000 });
});
afterAll(() => bench.close());
beforeEach(async () => {
  await bench.begin(lengths.getLength, 20);
  second = await startEngine('vllm', { speed: 20, lengths });
});
afterEach(async () => {
  await bench.end();
  await second.close();
});

it('continues the samples of an engine that hangs with a good health on another one, with their tokens', async () => {
  const { client, pool, engine } = bench;
  await bench.register();
  await bench.register({ serverId: 's2', instanceId: 'i2', endpoint: second.url });
  // The first engine gets two of the four samples: one never starts, the other stops in the middle.
  await inject(engine.url, { kind: 'hang', count: 1 });
  await inject(engine.url, { kind: 'stall', count: 1, afterTokens: 5 });
  await bench.submit(2);
  await bench.startWorker({ workerTtlMs: 1_500 });

  const results = async () => (await client.call(pool, 'round.results', { job: 'job', roundId: 'r1' })).groups;
  await expect.poll(async () => (await results()).length).toBe(2);
  const samples = (await results()).flatMap((group) => group.samples);
  const counts = samples.map(({ segments }) => segments.map(({ tokenCount }) => tokenCount));
  expect(counts.map((list) => list.reduce((sum, count) => sum + count, 0))).toEqual([TOKENS, TOKENS, TOKENS, TOKENS]);
  expect(counts.some((list) => list[0] === 5 && list.length === 2)).toBe(true);
});
