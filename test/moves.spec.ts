import { buildRequestId, type MoveStatus, type RebalanceStatus, type WantedMove } from '@broomwagon/contracts';
import { ENGINE_PRESETS, stepSeconds } from '@broomwagon/models';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setFailpoints } from '../libs/platform/src/failpoint';
import { inEngine, startEngine, fetchState } from '../lab/engine-simulator/src/test-engine';
import { SEED, trueTokens } from './system/data-set';
import { ServiceBench } from './system/service-bench';

const JOB = 'job';
const TOKENS = 400;
/** Responses take minutes, however slow the machine is, until {@link finish} makes the engines fast. */
const SLOW = 0.1;
const FAST = 50;
const PROMPT = { text: 'What is moved?' };
let bench: ServiceBench;
/** The second engine, as server s2. */
let other: Awaited<ReturnType<typeof startEngine>>;
let plans = 0;

beforeAll(async () => {
  bench = await ServiceBench.open({ rebalanceCheckMs: 100 });
});
afterAll(() => bench.close());
beforeEach(async () => {
  await bench.begin(() => TOKENS, SLOW);
  other = await startEngine('vllm', { speed: SLOW, lengths: { name: 'long', getLength: () => TOKENS } });
});
afterEach(async () => {
  setFailpoints('');
  await bench.end();
  expect(await inEngine(other.url)).toBe(0);
  await other.close();
});

/** One round with one group, all on s1. */
async function begin(
  samples: number,
  workerSettings: Parameters<ServiceBench['startWorker']>[0] = {},
  server: Parameters<ServiceBench['register']>[0] = {},
): Promise<void> {
  await bench.register(server);
  const policy = { name: 'resume' as const, overProvision: 1 };
  const plan = {
    planId: '1-short-1-1-0',
    step: 1,
    kind: 'short' as const,
    neededGroups: 1,
    newGroups: 1,
    takeGroups: 0,
  };
  const round = { job: JOB, roundId: 'r1' };
  const opening = { ...round, ...plan, policy, weightVersion: 0 };
  const { trainerEpoch } = await bench.client.call(bench.pool, 'round.open', opening);
  const groups = [{ groupId: 'g', samples, maxTokens: 8_000, prompt: PROMPT, sampling: { seed: SEED } }];
  await bench.client.call(bench.pool, 'round.submit', { ...round, trainerEpoch, groups });
  await bench.startWorker(workerSettings);
  await expect.poll(() => inEngine(bench.engine.url)).toBe(samples);
  await bench.client.call(bench.pool, 'server.register', {
    serverId: 's2',
    endpoint: other.url,
    dialect: 'vllm',
    instanceId: 'i2',
    maxInflight: 64,
  });
}
const requestId = (index = 0) => buildRequestId(JOB, 'g', index);
function execute(moves: WantedMove[], planId = `p${plans++}`): Promise<RebalanceStatus> {
  return bench.client.call(bench.pool, 'rebalance.execute', { planId, moves });
}
const readStatus = (planId: string) => bench.client.call(bench.pool, 'rebalance.status', { planId });
async function stateOfMove(planId: string): Promise<MoveStatus['state']> {
  return (await readStatus(planId)).results[0]!.state;
}
/** Lets all responses end. @returns their tokens */
function finish(speed = FAST): Promise<number[][]> {
  for (const engine of [bench.engine, other]) engine.setSpeed(speed);
  return bench.tokensOfGroup();
}
const expected = (samples: number) =>
  Array.from({ length: samples }, (_, index) =>
    trueTokens(JOB, { id: 'g', line: 1, prompt: PROMPT, samples, lengths: [TOKENS] }, index),
  );

describe('a move with a real worker and two engines', () => {
  it('continues a request elsewhere from its tokens, again and again, with the tokens of a run without moves', async () => {
    const timed = await bench.metric('move_phase_seconds_count');
    await begin(2);
    await bench.client.call(bench.pool, 'rebalance.configure', { maxMovesPerRequest: 4 });
    for (const [round, targetServerId] of ['s2', 's1', 's2'].entries()) {
      const before = (await bench.counts()).requests;
      expect(before).toMatchObject({ running: 2 });
      const { planId } = await execute([{ requestId: requestId(), targetServerId }], `hop-${round}`);
      await expect.poll(() => stateOfMove(planId)).toBe('moved');
      await expect.poll(() => inEngine(other.url)).toBe(targetServerId === 's2' ? 1 : 0);
      // The target generates some tokens before the next move.
      const { tokensMade } = await fetchState(targetServerId === 's2' ? other.url : bench.engine.url);
      const target = targetServerId === 's2' ? other.url : bench.engine.url;
      await expect.poll(async () => (await fetchState(target)).tokensMade).toBeGreaterThan(tokensMade + 2);
    }
    expect(await finish()).toEqual(expected(2));
    const { groups } = await bench.client.call(bench.pool, 'round.results', { job: JOB, roundId: 'r1' });
    expect(groups[0]!.samples[0]!.segments.map(({ serverId }) => serverId)).toEqual(['s1', 's2', 's1', 's2']);
    expect(groups[0]!.cuts).toBe(0);
    expect(
      [await fetchState(bench.engine.url), await fetchState(other.url)].map((one) => one.resumeMismatches),
    ).toEqual([0, 0]);
    // The times of a move are reported with the end of the attempt at the latest.
    const number = expect.any(Number) as number;
    const times = { stopMs: number, placeMs: number, resumeMs: number, firstTokenMs: number };
    for (const round of [0, 1, 2]) {
      expect((await readStatus(`hop-${round}`)).results).toEqual([expect.objectContaining({ state: 'moved', times })]);
    }
    // Three moves have four phases each.
    expect((await bench.metric('move_phase_seconds_count')) - timed).toBe(12);
  });

  it('knows by their streams which requests wait in their engine, and moves these first and free', async () => {
    await bench.engine.close();
    const lengths = { name: 'long', getLength: () => TOKENS };
    const parameters = { ...ENGINE_PRESETS['7b-8k'], slots: 2 };
    bench.engine = await startEngine('vllm', { speed: SLOW, lengths, parameters });
    // Without reports of the engine, only the streams show which requests wait.
    await begin(6, { waitingAfterMs: 200 }, { probe: false });
    const waiting = async () =>
      (await fetchState(bench.engine.url)).table.filter(({ state }) => state === 'waiting').length;
    expect(await waiting()).toBe(4);
    await bench.client.call(bench.pool, 'rebalance.configure', { tiers: [8, 4], minRemainingTokens: 1 });
    const planned = async (planId: string) => {
      const { results } = await bench.client.call(bench.pool, 'rebalance.plan', { planId });
      return results.map(({ means, costSeconds }) => `${means} ${costSeconds}`);
    };
    await expect.poll(() => planned(`waits-${plans++}`)).toEqual(['bind 0', 'bind 0', 'bind 0', 'bind 0']);
    await bench.client.call(bench.pool, 'rebalance.execute', { planId: `waits-${plans - 1}` });
    await expect.poll(() => inEngine(other.url)).toBe(4);
    await expect.poll(waiting).toBe(0);
    expect(await finish()).toEqual(expected(6));
  });

  it('is carried out though the replica dies after the intent, and is sent once', async () => {
    await begin(1);
    setFailpoints('coordinator.move.after-intent=throw@1');
    await expect(execute([{ requestId: requestId(), targetServerId: 's2' }], 'once')).rejects.toMatchObject({
      code: 'INTERNAL',
    });
    await expect.poll(() => stateOfMove('once')).toBe('moved');
    const again = await execute([{ requestId: requestId(), targetServerId: 's2' }], 'once');
    expect(again).toMatchObject({ sentMoves: 1, states: { moved: 1 } });
    expect(await finish()).toEqual(expected(1));
  });

  it('survives its worker and its server', async () => {
    await begin(2);
    // The engine of server s1 answers no more.
    await bench.engine.close();
    await execute([0, 1].map((index) => ({ requestId: requestId(index), targetServerId: 's2' })));
    await expect.poll(() => inEngine(other.url)).toBe(2);
    // Another process registers under the worker's name, as after a partition.
    const back = await execute([{ requestId: requestId(), targetServerId: 's2' }]);
    expect(back.results).toMatchObject([{ state: 'refused', refusal: 'same-server' }]);
    await bench.client.call(bench.pool, 'worker.register', { workerId: 'w1', registrationId: 'another', ttlMs: 500 });
    expect(await finish()).toEqual(expected(2));
    bench.engine = await startEngine('vllm', { speed: 1 });
  });

  it('races completion: exactly one wins', async () => {
    await begin(4);
    bench.engine.setSpeed(FAST);
    await expect.poll(async () => (await bench.counts()).requests.finished, { interval: 1 }).toBeGreaterThan(0);
    const moves = [0, 1, 2, 3].map((index) => ({ requestId: requestId(index), targetServerId: 's2' }));
    const { planId } = await execute(moves);
    expect(await finish()).toEqual(expected(4));
    const { states } = await readStatus(planId);
    expect(Object.keys(states).filter((state) => state !== 'moved')).toEqual(['completed-first']);
    expect((await bench.counts()).requests).toMatchObject({ submitted: 4, finished: 4 });
  });

  it('is planned, refused and reported with typed replies', async () => {
    await begin(6);
    const engine = { tiers: [8, 4], stepBaseSeconds: 0.01, stepPerSequenceSeconds: 0.01, minRemainingTokens: 1 };
    await bench.client.call(bench.pool, 'rebalance.configure', engine);
    const plan = await bench.client.call(bench.pool, 'rebalance.plan', { planId: 'dry' });
    expect(plan).toMatchObject({ tierBefore: 8, tierAfter: 4, moves: 2, sentMoves: 0, states: { planned: 2 } });
    expect(plan.results[0]).toMatchObject({ fromServerId: 's1', toServerId: 's2', purpose: 'tier', state: 'planned' });
    expect(plan.results[0]!.costSeconds).toBeGreaterThan(0);
    expect(plan.gainSeconds).toBeGreaterThan(plan.stallSeconds!);
    expect(await inEngine(other.url)).toBe(0);
    await bench.client.call(bench.pool, 'rebalance.execute', { planId: 'dry' });
    await expect.poll(() => inEngine(other.url)).toBe(2);

    const refused = (operation: 'rebalance.plan' | 'rebalance.execute' | 'rebalance.configure', body: object) =>
      expect(bench.client.call(bench.pool, operation, body as never)).rejects;
    for (const tiers of [[], [4, 8], [8, -4]]) {
      await refused('rebalance.plan', { planId: 'bad', tiers }).toMatchObject({
        code: 'VALIDATION_FAILED',
        field: 'tiers',
      });
      await refused('rebalance.configure', { tiers }).toMatchObject({ code: 'VALIDATION_FAILED', field: 'tiers' });
    }
    await refused('rebalance.execute', { planId: 'nobody' }).toMatchObject({ code: 'PLAN_NOT_FOUND' });
    await refused('rebalance.execute', { planId: 'bad', moves: [] }).toMatchObject({ field: 'moves' });
    const nothing = [{ targetServerId: 's2' }];
    await refused('rebalance.execute', { planId: 'bad', moves: nothing }).toMatchObject({ field: 'moves.0' });
    for (const subject of [{ requestId: requestId() }, { leaseId: '1.loop' }]) {
      const twice = ['s1', 's2'].map((targetServerId) => ({ ...subject, targetServerId }));
      await refused('rebalance.execute', { planId: 'bad', moves: twice }).toMatchObject({
        code: 'VALIDATION_FAILED',
        field: `moves.1.${Object.keys(subject)[0]}`,
      });
    }
    await refused('rebalance.execute', {
      planId: 'dry',
      moves: [{ requestId: requestId(), targetServerId: 's2' }],
    }).toMatchObject({ code: 'VALIDATION_FAILED', field: 'planId' });
  });
});

const EAGER = {
  tiers: [8, 4],
  stepBaseSeconds: 0.01,
  stepPerSequenceSeconds: 0.01,
  minRemainingTokens: 1,
  minPlanIntervalMs: 100,
};

describe('a pool that rebalances by itself', () => {
  it('halves the time of a step by the clocks of the engines, where it halves their largest batch', async () => {
    await Promise.all([bench.engine.close(), other.close()]);
    const [tokens, graphTiers] = [6_000, EAGER.tiers.toReversed()];
    const times = { stepBaseSeconds: 0, stepPerSequenceSeconds: 0.01, stepPerKvTokenSeconds: 0 };
    const parameters = { ...ENGINE_PRESETS['7b-8k'], ...times, graphTiers };
    const slow = { speed: SLOW, lengths: { name: 'long', getLength: () => tokens }, parameters };
    const engines = [await startEngine('vllm', slow), await startEngine('vllm', slow)] as const;
    [bench.engine, other] = engines;
    await bench.client.call(bench.pool, 'rebalance.configure', { mode: 'on', ...EAGER });
    await begin(8);
    await expect.poll(() => inEngine(other.url)).toBe(4);
    expect((await finish(2_000)).map(({ length }) => length)).toEqual(Array(8).fill(tokens));
    const busySeconds = await Promise.all(engines.map(async ({ url }) => (await fetchState(url)).busySeconds));
    // The speedup stays below 2, because the first steps are as slow as without moves.
    expect((tokens * stepSeconds(parameters, 8, 0)) / Math.max(...busySeconds)).toBeGreaterThan(1.8);
  });

  it('follows the published rule: at its interval in decode steps, with its bound of running requests', async () => {
    const step = { stepBaseSeconds: 0.001, stepPerSequenceSeconds: 0.001 };
    const published = { policy: 'tier-min' as const, tiers: [8], planIntervalSteps: 20, maxRunning: 5 };
    await bench.client.call(bench.pool, 'rebalance.configure', {
      mode: 'on',
      minPlanIntervalMs: 100,
      ...step,
      ...published,
    });
    await begin(7);
    // The batch has reached the only tier; requests above the bound move.
    await expect.poll(() => inEngine(other.url)).toBe(2);
    expect(await finish()).toEqual(expected(7));
  });

  it('plans a transfer where the servers share a KV store, and no other', async () => {
    await begin(6);
    const kv = { kvBytesPerToken: 1, kvBytesPerSecond: 1e9, kvSetupSeconds: 0, prefillTokensPerSecond: 1 };
    await bench.client.call(bench.pool, 'rebalance.configure', { ...EAGER, ...kv, minGainRatio: 0 });
    const meansWith = async (store: string) => {
      for (const [serverId, name] of Object.entries({ s1: 'pool-a', s2: store })) {
        await bench.client.call(bench.pool, 'server.update', { serverId, labels: { 'kv-store': name } });
      }
      const plan = await bench.client.call(bench.pool, 'rebalance.plan', { planId: `to-${store}` });
      return plan.results.map(({ means }) => means);
    };
    expect(await meansWith('pool-a')).toEqual(['transfer', 'transfer']);
    expect(await meansWith('pool-b')).toEqual(['recompute', 'recompute']);
  });

  it('moves nothing in a dry run; then evens out, and empties a server in drain', async () => {
    const configure = (mode: 'dry-run' | 'on') =>
      bench.client.call(bench.pool, 'rebalance.configure', { mode, ...EAGER, planIntervalMs: 200 });
    await configure('dry-run');
    await begin(6);
    await expect.poll(() => bench.metric('rebalance_plans_total')).toBeGreaterThan(1);
    expect(await inEngine(other.url)).toBe(0);
    await configure('on');
    await expect.poll(() => inEngine(other.url)).toBe(2);
    await bench.client.call(bench.pool, 'server.drain', { serverId: 's1', deadlineMs: 60_000 });
    await expect.poll(() => inEngine(other.url)).toBe(6);
    await expect
      .poll(async () =>
        (await bench.client.call(bench.pool, 'server.list', {})).servers.map(({ serverId }) => serverId),
      )
      .toEqual(['s2']);
    expect(await finish()).toEqual(expected(6));
  });
});
