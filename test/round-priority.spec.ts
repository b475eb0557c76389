import { afterEach, beforeEach, expect, it } from 'vitest';
import { startEngine, fetchState } from '../lab/engine-simulator/src/test-engine';
import { TestSystem } from './system/test-system';

/** Length of the responses of each job, which identifies the job of a request in the engine. */
const TOKENS = { low: 200, high: 300 };
const GROUPS = 3;
/** Long enough that no acquire ends its wait and no worker expires while a busy machine pauses. */
const environment = { ACQUIRE_WAIT_MS: '20000', WORKER_TTL_MS: '6000' };
let system: TestSystem;
let engine: Awaited<ReturnType<typeof startEngine>>;

beforeEach(async () => {
  system = await TestSystem.start({ engines: 0, workers: 1, environment });
  engine = await startEngine('vllm', { lengths: { name: 'long', getLength: () => 1_000 } });
});
afterEach(async () => {
  await system.stop();
  await engine.close();
});

async function open(job: 'low' | 'high', priority: number) {
  const groups = Array.from({ length: GROUPS }, (_, index) => ({
    groupId: `g${index}`,
    samples: 1,
    maxTokens: TOKENS[job],
    prompt: { text: `${job} ${index}` },
  }));
  const policy = { name: 'wait', overProvision: 1 } as const;
  const round = await system.openRound(job, { groupsPerStep: GROUPS, groups, policy, priority });
  return { job, ...round };
}

async function waitForAcquires(count: number): Promise<void> {
  await expect.poll(async () => (await system.call('lb.status', {})).waiters, { timeout: 20_000 }).toBe(count);
}

it('gives the room of a full pool to the round with the higher priority first', async () => {
  const low = await open('low', 1);
  await waitForAcquires(GROUPS);
  const high = await open('high', 9);
  await waitForAcquires(2 * GROUPS);

  const one = { serverId: 's1', endpoint: engine.url, dialect: 'vllm', model: 'simulated', instanceId: 'i' } as const;
  await system.call('server.register', { ...one, maxInflight: 1, weightVersion: 0 });
  for (const { job, roundId } of [high, low]) {
    await expect
      .poll(async () => (await system.call('round.status', { job, roundId })).state, { timeout: 20_000 })
      .toBe('completed');
  }
  const { table } = await fetchState(engine.url);
  // In the table of the engine, the request that ended last comes first.
  const inTurn = table.map(({ made }) => made).toReversed();
  const times = (tokens: number) => Array.from({ length: GROUPS }, () => tokens);
  expect(inTurn).toEqual([...times(TOKENS.high), ...times(TOKENS.low)]);
});
