import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { TestPools } from '../rounds/test-pools.fixture';
import { WeightStore } from './weight.store';

const test = new TestPools();
const weights = new WeightStore(test.runner);
let pool: string;
beforeEach(async () => {
  await test.fresh();
  ({ pool } = test);
});
afterAll(() => test.close());

const server = (serverId: string, weightVersion: number, pauseModes: string[]) =>
  test.routing.registerServer(pool, {
    capabilities: JSON.stringify({ pauseModes }),
    serverId,
    endpoint: 'http://e',
    dialect: 'vllm',
    probe: false,
    instanceId: 'i',
    maxInflight: 8,
    weight: 1,
    weightVersion,
  });
const begin = (mode: 'abort' | 'keep', syncId = 'sync') =>
  weights.begin(pool, { syncId, version: 2, mode, deadlineMs: 60_000 });
const rollBack = (syncId = 'sync') => weights.end(pool, { syncId, outcome: 'rolled-back', reason: 'asked' });
const steps = async () => (await weights.engineSteps(pool, '0')).steps;
const about = { serverId: 's1', endpoint: 'http://e', dialect: 'vllm' as const, syncId: 'sync' };

describe('engines that are paused while weights change', () => {
  it('says which engines are to pause and to go on, again until they were told', async () => {
    await server('s1', 1, ['abort', 'keep']);
    await server('s2', 1, []);
    expect(await steps()).toEqual([]);
    const held = ['q1', 'q2'].map((acquireId) => ({ acquireId, requestId: 'free', ...test.holder }));
    await test.routing.acquire(pool, held);
    await begin('abort');
    expect(await steps(), 'something runs').toEqual([]);
    await test.routing.release(pool, held);
    for (const repeat of [1, 2]) expect(await steps(), `${repeat}`).toEqual([{ ...about, mode: 'abort' }]);
    expect(await weights.engineTold(pool, { ...about, mode: 'abort' }, 60_000)).toEqual({ late: false });
    expect(await steps()).toEqual([]);
    const { servers } = await weights.status(pool, undefined, '0');
    expect(servers.filter(({ paused }) => paused).map(({ serverId }) => serverId)).toEqual(['s1']);
    await rollBack();
    for (const repeat of [1, 2]) expect(await steps(), `${repeat}`).toEqual([about]);
    await weights.engineTold(pool, about, 60_000);
    expect(await steps()).toEqual([]);

    // Over before the engine has heard of it: it goes on at once, and is told so until the pause cannot be on its way.
    await begin('keep', 'brief');
    const brief = { ...about, syncId: 'brief' };
    expect(await steps()).toEqual([{ ...brief, mode: 'keep' }]);
    await rollBack('brief');
    expect(await weights.engineTold(pool, { ...brief, mode: 'keep' }, 60_000)).toEqual({ late: true });
    await weights.engineTold(pool, brief, 60_000);
    expect(await steps()).toEqual([brief]);
    await weights.engineTold(pool, brief, -1);
    expect(await steps()).toEqual([]);
  });

  it('remembers a paused engine whose server is removed meanwhile, for an hour', async () => {
    await server('s1', 1, ['keep']);
    await begin('keep');
    const [paused] = await steps();
    await weights.engineTold(pool, paused!, 60_000);
    await test.routing.removeServer(pool, 's1');
    await rollBack();
    expect(await steps()).toEqual([]);
    await server('s1', 1, ['keep']);
    expect(await steps(), 'to go on, now that it is there again').toMatchObject([{ serverId: 's1', syncId: 'sync' }]);

    await test.routing.removeServer(pool, 's1');
    await test.redis.hset(test.key('weights:engines'), 's1', `sync|paused|${Date.now() - 3_700_000}`);
    await steps();
    expect(await test.redis.hlen(test.key('weights:engines'))).toBe(0);
  });
});
