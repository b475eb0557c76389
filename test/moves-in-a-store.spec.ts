import { buildRequestId } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { startEngine, fetchState } from '../lab/engine-simulator/src/test-engine';
import { SEED, trueTokens } from './system/data-set';
import { ServiceBench } from './system/service-bench';

/** Length of the responses: more tokens than are generated before the engines go faster. */
const TOKENS = 6_000;
const LAST_SPEED = 2_000;
const SAMPLES = 6;
const PROMPT = { text: 'What is moved?' };
const LABELS = { 'kv-store': 'one' };
/** Costs for engines and plans: a cache is read in nearly no time. */
const STORE = { bytesPerToken: 1_000, bytesPerSecond: 1e12, setupSeconds: 0 };
let bench: ServiceBench;
/** Server s3, with no store. */
let apart: Awaited<ReturnType<typeof startEngine>>;

beforeAll(async () => {
  bench = await ServiceBench.open({ rebalanceCheckMs: 100 });
});
afterAll(() => bench.close());
beforeEach(async () => {
  await bench.begin(() => TOKENS, 1, 'vllm', { engines: 2, kvStore: STORE });
  apart = await startEngine('vllm', { speed: 1, lengths: { name: 'long', getLength: () => TOKENS } });
});
afterEach(async () => {
  await bench.end();
  await apart.close();
});

const register = (serverId: string, endpoint: string, labels: Record<string, string> = {}) =>
  bench.client.call(bench.pool, 'server.register', {
    serverId,
    endpoint,
    dialect: 'vllm',
    instanceId: serverId,
    maxInflight: 64,
    labels,
  });

it('moves requests within a store of servers without a second prefill, with the tokens of a run without moves', async () => {
  const { client, pool } = bench;
  const inStore = bench.engine.servers.map(({ url }) => url) as [string, string];
  await bench.register({ labels: LABELS });
  const trainerEpoch = await bench.openRound(1);
  const groups = [{ groupId: 'g', samples: SAMPLES, maxTokens: 8_000, prompt: PROMPT, sampling: { seed: SEED } }];
  await client.call(pool, 'round.submit', { job: bench.job, roundId: 'r1', trainerEpoch, groups });
  await bench.startWorker();
  await bench.running(SAMPLES);
  // Moves without the store would have to prefill these tokens again.
  await bench.made(20);
  await register('s2', inStore[1], LABELS);
  await register('s3', apart.url);

  await client.call(pool, 'rebalance.configure', {
    tiers: [8, 4],
    minRemainingTokens: 1,
    minGainRatio: 0,
    minMoveIntervalMs: 0,
    kvBytesPerToken: STORE.bytesPerToken,
    kvBytesPerSecond: STORE.bytesPerSecond,
    kvSetupSeconds: STORE.setupSeconds,
  });
  const plan = await client.call(pool, 'rebalance.plan', { planId: 'within' });
  const planned = plan.results.map(({ means, fromServerId, toServerId }) => ({ means, fromServerId, toServerId }));
  expect(planned.length).toBeGreaterThan(0);
  expect(planned).toEqual(planned.map(() => ({ means: 'transfer', fromServerId: 's1', toServerId: 's2' })));
  await client.call(pool, 'rebalance.execute', { planId: 'within' });
  const states = async (planId: string) => (await client.call(pool, 'rebalance.status', { planId })).states;
  await expect.poll(() => states('within')).toEqual({ moved: planned.length });
  await expect.poll(async () => (await fetchState(inStore[1])).requests.received).toBe(planned.length);
  expect((await fetchState(inStore[1])).prefillTokens).toBe(0);

  // A move to a server outside of the store prefills all tokens of the request again.
  const moved = new Set(plan.results.map(({ requestId }) => requestId));
  const requestId = Array.from({ length: SAMPLES }, (_, index) => buildRequestId(bench.job, 'g', index)).find(
    (id) => !moved.has(id),
  )!;
  await client.call(pool, 'rebalance.execute', { planId: 'apart', moves: [{ requestId, targetServerId: 's3' }] });
  await expect.poll(() => states('apart')).toEqual({ moved: 1 });
  await expect.poll(async () => (await fetchState(apart.url)).prefillTokens).toBeGreaterThan(20);

  for (const engines of [bench.engine, apart]) engines.setSpeed(LAST_SPEED);
  const identity = { id: 'g', line: 1, prompt: PROMPT, samples: SAMPLES, lengths: [TOKENS] };
  const expected = Array.from({ length: SAMPLES }, (_, index) => trueTokens(bench.job, identity, index));
  expect(await bench.tokensOfGroup()).toEqual(expected);
  for (const url of [...inStore, apart.url]) expect(await fetchState(url)).toMatchObject({ resumeMismatches: 0 });
  expect((await fetchState(inStore[1])).prefillTokens).toBe(0);
  const { requests } = await bench.counts();
  expect(requests).toMatchObject({ submitted: SAMPLES, finished: SAMPLES, running: 0, pending: 0, cutting: 0 });
});
