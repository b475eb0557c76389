import { randomUUID } from 'node:crypto';
import { buildRequestId, PAUSE_MODES } from '@broomwagon/contracts';
import type { RunningService } from '@broomwagon/platform';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { WorkerConfig } from '../apps/worker/src/worker.config';
import { inEngine, selectZoo, startEngine } from '../lab/engine-simulator/src/test-engine';
import { SEED, trueTokens } from './system/data-set';
import { liveRows, ServiceBench } from './system/service-bench';
import { standsLong } from './system/stands-long';

const JOB = 'job';
const SAMPLES = 2;
const TOKENS = 500;
/** Tokens that an engine has made when its calls are cut: it has not sent the last tokens of an event, all but one. */
const MADE = 320;
/** How engines send the tokens of a worker. */
interface Events {
  tokens: number;
  settings: Partial<WorkerConfig>;
  zoo: string[];
}
const EVENTS: Events[] = [
  { tokens: 64, settings: {}, zoo: [] },
  { tokens: 5, settings: { streamInterval: 1 }, zoo: ['stream-interval'] },
  { tokens: 1, settings: { streamInterval: 1 }, zoo: [] },
];
const FAST = 50;
const PROMPT = { text: 'What was not sent?' };
let bench: ServiceBench;
let other: Awaited<ReturnType<typeof startEngine>>;
let worker: RunningService<WorkerConfig>;
let settings: Partial<WorkerConfig>;

beforeAll(async () => {
  bench = await ServiceBench.open({ rebalanceCheckMs: 100 }, 28);
});
afterAll(() => bench.close());
afterEach(async () => {
  await bench.end();
  await other.close();
});

const call: ServiceBench['client']['call'] = (...args) => bench.client.call(...args);

/** Starts two engines, and a round whose samples stand still on the first engine. */
async function begin(dialect: 'vllm' | 'sglang', { zoo, ...events }: Events): Promise<void> {
  ({ settings } = events);
  const lengths = { name: 'long', getLength: () => TOKENS };
  await bench.begin(lengths.getLength, FAST, dialect, { zoo });
  other = await startEngine(dialect, { speed: FAST, lengths, zoo });
  await selectZoo(bench.engine.url, { entries: zoo, standsAt: MADE });
  const model = dialect === 'vllm' ? { model: 'simulated' } : {};
  await bench.register({ dialect, ...model });
  const plan = { planId: '1-short-1-1-0', step: 1, kind: 'short' as const };
  const counts = { neededGroups: 1, newGroups: 1, takeGroups: 0, weightVersion: 0 };
  const round = { job: JOB, roundId: 'r1' };
  const policy = { name: 'resume' as const, overProvision: 1 };
  const { trainerEpoch } = await call(bench.pool, 'round.open', { ...round, ...plan, ...counts, policy });
  const groups = [{ groupId: 'g', samples: SAMPLES, maxTokens: 8_000, prompt: PROMPT, sampling: { seed: SEED } }];
  await call(bench.pool, 'round.submit', { ...round, trainerEpoch, groups });
  worker = await bench.startWorker(settings);
  await expect.poll(async () => liveRows(await bench.engineState()).map(({ made }) => made)).toEqual([MADE, MADE]);
  const capabilities = { pauseModes: [...PAUSE_MODES] };
  const second = { serverId: 's2', endpoint: other.url, instanceId: 'i2', maxInflight: 64, capabilities };
  await call(bench.pool, 'server.register', { dialect, ...model, ...second });
}

async function unsentTokens(): Promise<number> {
  const page = await (await fetch(`http://127.0.0.1:${worker.httpPort}/metrics`)).text();
  const lines = page.split('\n').filter((line) => line.startsWith('broomwagon_tokens_unsent_total{'));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

async function expectWhole(firstTokens: number): Promise<void> {
  const prompt = { id: 'g', line: 1, prompt: PROMPT, samples: SAMPLES, lengths: [TOKENS] };
  const expected = [0, 1].map((index) => trueTokens(JOB, prompt, index));
  expect(await bench.tokensOfGroup()).toEqual(expected);
  const { groups } = await call(bench.pool, 'round.results', { job: JOB, roundId: 'r1' });
  const counts = groups[0]!.samples.map(({ segments }) => segments.map(({ tokenCount }) => tokenCount));
  expect(counts).toEqual([
    [firstTokens, TOKENS - firstTokens],
    [firstTokens, TOKENS - firstTokens],
  ]);
}

const CUTS: [string, () => Promise<unknown>][] = [
  [
    'a move',
    () => {
      const moves = [0, 1].map((index) => ({ requestId: buildRequestId(JOB, 'g', index), targetServerId: 's2' }));
      return call(bench.pool, 'rebalance.execute', { planId: randomUUID(), moves });
    },
  ],
  ['a drain of the server', () => call(bench.pool, 'server.drain', { serverId: 's1', deadlineMs: 100 })],
  [
    'a change of weights',
    async () => {
      await call(bench.pool, 'weights.begin', { syncId: 'sync', version: 1, mode: 'abort', waitMs: 10_000 });
      for (const serverId of ['s1', 's2']) await call(bench.pool, 'server.update', { serverId, weightVersion: 1 });
      await call(bench.pool, 'weights.commit', { syncId: 'sync' });
    },
  ],
  [
    'the end of the worker',
    async () => {
      await bench.closeWorkers();
      worker = await bench.startWorker({ workerId: 'w2', ...settings });
    },
  ],
];

const ENGINES = (['vllm', 'sglang'] as const).flatMap((dialect) => EVENTS.map((events) => ({ dialect, events })));

describe.each(ENGINES)('$dialect with $events.tokens tokens in an event', ({ dialect, events }) => {
  beforeEach(() => begin(dialect, events));

  it.each(CUTS)('loses no token at %s', async (_, cut) => {
    // Later calls do not stand still.
    await selectZoo(bench.engine.url, { entries: events.zoo });
    await cut();
    await expectWhole(MADE);
    expect(await unsentTokens()).toBe(0);
    await expect.poll(() => inEngine(bench.engine.url)).toBe(0);
  });
});

it.each(ENGINES.filter(({ events }) => events.tokens > 1))(
  '$dialect with $events.tokens tokens in an event loses less than one event of each call when it dies, which is counted',
  async ({ dialect, events }) => {
    await begin(dialect, events);
    await standsLong(bench.engine.url);
    await bench.engine.close();
    const unsent = events.tokens - 1;
    await expectWhole(MADE - unsent);
    const lost = await unsentTokens();
    // The streams have been silent for longer than an event takes, so that the estimate is the bound.
    expect(lost).toBe(SAMPLES * unsent);
    const { summary } = await call(bench.pool, 'job.ledger', { job: JOB });
    expect(summary.waste.byReason).toEqual({ 'not-stored': lost });
    // The end of the test closes an engine.
    bench.engine = await startEngine(dialect);
  },
);
