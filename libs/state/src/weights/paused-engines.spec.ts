import type { EngineCapabilities } from '@broomwagon/contracts';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { TestPools } from '../rounds/test-pools.fixture';
import { WeightStore } from './weight.store';

const test = new TestPools();
const weights = new WeightStore(test.runner);
let pool: string;
beforeEach(async () => {
  await test.fresh();
  ({ pool } = test);
  // The generation of the pool starts before its servers are registered.
  await test.rounds.due(pool);
  await steps();
});
afterAll(() => test.close());

const server = async (
  serverId: string,
  weightVersion: number,
  pauseModes: EngineCapabilities['pauseModes'],
  endpoint = `http://${serverId}`,
) => {
  await test.servers.register(pool, {
    capabilities: { pauseModes },
    serverId,
    endpoint,
    dialect: 'vllm',
    instanceId: 'i',
    maxInflight: 8,
    weight: 1,
    weightVersion,
  });
  await test.servers.update(pool, { serverId, isDescribed: true });
};
/** Confirms a resume for each engine that must resume now. @returns their server ids */
const resumeAll = async () => {
  const told = [...(await resumes()), ...(await resumes())];
  for (const step of told) await weights.engineTold(pool, step, 60_000);
  return [...new Set(told.map(({ serverId }) => serverId))].sort();
};
const begin = (mode: 'abort' | 'keep', syncId = 'sync') =>
  weights.begin(pool, { syncId, version: 2, mode, deadlineMs: 60_000 });
const rollBack = (syncId = 'sync') => weights.end(pool, { syncId, outcome: 'rolled-back', reason: 'asked' });
const steps = async () => (await weights.engineSteps(pool, {})).steps;
const resumes = async () => (await weights.engineResumes(pool, {})).steps;
const about = { serverId: 's1', endpoint: 'http://s1', dialect: 'vllm' as const, syncId: 'sync' };

describe('engines that are paused while weights change', () => {
  it('are listed to pause and to resume until they were told', async () => {
    await server('s1', 1, ['abort', 'keep']);
    await server('s2', 1, []);
    expect(await resumeAll()).toEqual(['s1']);
    expect(await steps()).toEqual([]);
    const held = ['q1', 'q2'].map((acquireId) => ({ acquireId, requestId: 'free', ...test.holder }));
    await test.leases.acquire(pool, held);
    await begin('abort');
    expect(await steps(), 'something runs').toEqual([]);
    await test.leases.release(pool, held);
    for (const repeat of [1, 2]) expect(await steps(), `${repeat}`).toEqual([{ ...about, mode: 'abort' }]);
    for (const repeat of [1, 2]) {
      expect(await weights.engineTold(pool, { ...about, mode: 'abort' }, 60_000), `${repeat}`).toEqual({ late: false });
    }
    expect(await steps()).toEqual([]);
    const { servers } = await weights.status(pool, { cursor: '0' });
    expect(servers.filter(({ paused }) => paused).map(({ serverId }) => serverId)).toEqual(['s1']);
    expect(await resumes()).toEqual([]);
    await rollBack();
    for (const repeat of [1, 2]) expect(await resumes(), `${repeat}`).toEqual([about]);
    for (const _repeat of [1, 2]) await weights.engineTold(pool, about, 60_000);
    expect([await steps(), await resumes()]).toEqual([[], []]);
    const events = (await test.redis.xrange(test.key('events'), '-', '+')).map(([, fields]) => fields[1]);
    expect(events).toEqual(['weights.begun', 'server.paused', 'weights.rolled-back', 'server.resumed']);

    // The change ends before the pause arrives. The engine resumes at once, and again until no pause can arrive later.
    await begin('keep', 'brief');
    const brief = { ...about, syncId: 'brief' };
    expect(await steps()).toEqual([{ ...brief, mode: 'keep' }]);
    await rollBack('brief');
    expect(await weights.engineTold(pool, { ...brief, mode: 'keep' }, 60_000)).toEqual({ late: true });
    expect(await resumes()).toEqual([brief]);
    await weights.engineTold(pool, brief, 60_000);
    expect(await resumes()).toEqual([brief]);
    await weights.engineTold(pool, brief, -1);
    expect(await resumes()).toEqual([]);
  });

  it('resume if their server is removed, or gets another address, while the weights change', async () => {
    for (const id of ['s1', 's2', 's3']) await server(id, 1, ['keep']);
    await resumeAll();
    await begin('keep');
    for (const step of await steps()) await weights.engineTold(pool, step, 60_000);
    expect(await weights.engineSteps(pool, {})).toMatchObject({ steps: [], resumes: true });
    expect(await resumes()).toEqual([]);
    await test.servers.remove(pool, { serverId: 's1' });
    await server('s2', 1, ['keep'], 'http://elsewhere');
    expect((await resumes()).map(({ endpoint }) => endpoint).sort()).toEqual(['http://s1', 'http://s2']);
    expect((await steps()).map(({ endpoint }) => endpoint)).toEqual(['http://elsewhere']);
    // If the server is registered again before its engine was told to resume, the engine is paused again.
    await server('s1', 1, ['keep']);
    const again = (await steps()).filter(({ serverId }) => serverId === 's1');
    expect(again).toHaveLength(1);
    await weights.engineTold(pool, again[0]!, 60_000);
    expect((await weights.engineHeld(pool, about)).held).toBe(true);
    expect((await resumes()).map(({ endpoint }) => endpoint)).toEqual(['http://s2']);
    await rollBack();
    expect((await weights.engineHeld(pool, about)).held).toBe(false);
    expect((await resumes()).map(({ serverId }) => serverId)).toContain('s1');
  });

  it('are told less and less often if they do not answer, and are given up after an hour', async () => {
    await server('s1', 1, ['keep']);
    await resumeAll();
    await begin('keep');
    await weights.engineTold(pool, (await steps())[0]!, 60_000);
    await rollBack();
    for (const repeat of [1, 2, 3]) expect(await resumes(), `${repeat}`).toHaveLength(1);
    expect(await resumes()).toEqual([]);
    const name = 'vllm|http://s1';
    const entry = async () => JSON.parse((await test.redis.hget(test.key('weights:engines'), name))!) as object;
    const since = async (times: (nowMs: number) => object) => {
      const changed = { ...(await entry()), nextAtMs: 0, ...times(Date.now()) };
      await test.redis.hset(test.key('weights:engines'), name, JSON.stringify(changed));
    };
    await since((nowMs) => ({ resumeAtMs: nowMs - 61_000 }));
    expect(await weights.engineResumes(pool, {})).toMatchObject({
      steps: [about],
      overdue: 1,
      givenUp: [],
    });
    await since((nowMs) => ({ resumeAtMs: nowMs - 3_601_000 }));
    expect(await weights.engineResumes(pool, {})).toMatchObject({
      steps: [],
      overdue: 0,
      givenUp: [about],
    });
    // Another replica that has paused the engine gets this answer, and records no second pause.
    expect((await weights.engineKnown(pool, { steps: [about] })).recorded).toEqual([false]);
    expect(await weights.engineResumes(pool, {})).toMatchObject({ steps: [], overdue: 0, givenUp: [] });
    // The engine is paused for the next change like an engine without a record.
    await begin('keep', 'next');
    expect(await steps()).toEqual([{ ...about, syncId: 'next', mode: 'keep' }]);
    expect(await entry()).not.toHaveProperty('givenUpAtMs');
  });

  it('are told once more when their server is ready again after they were given up', async () => {
    const entry = { syncId: 'sync', serverId: 's1', state: 'paused', askedAtMs: 0, resumeAtMs: 0 };
    const givenUpAtMs = Date.now() - 3_601_000;
    const at = test.key('weights:engines');
    const limits = { suspectAfterMs: 5_000, failedAfterMs: 30_000 };
    // Another server of the pool still answers.
    for (const id of ['s1', 's2']) await server(id, 1, ['keep']);
    await resumeAll();
    await test.redis.hset(at, 'vllm|http://s1', JSON.stringify({ ...entry, givenUpAtMs }));
    // The server answers, though the engine could not be told, so it is not told again.
    expect(await resumes()).toEqual([]);
    await test.redis.zadd(test.key('servers:watched'), Date.now() - 60_000, 's1');
    expect((await test.servers.review(pool, limits)).failed).toEqual(['s1']);
    expect(await resumes()).toEqual([]);
    await test.servers.update(pool, { serverId: 's1', isDescribed: true });
    await resumes();
    expect(await resumes()).toEqual([about]);
    await weights.engineTold(pool, about, 60_000);
    expect([await resumes(), await test.redis.exists(at)]).toEqual([[], 0]);

    await test.redis.hset(at, 'vllm|http://s1', JSON.stringify({ ...entry, givenUpAtMs }));
    await test.servers.remove(pool, { serverId: 's1' });
    expect(await weights.engineResumes(pool, {})).toMatchObject({ steps: [], givenUp: [] });
    expect(await test.redis.exists(at)).toBe(0);
  });

  it('resume once in a new generation, because the record of their pause may be lost', async () => {
    for (const id of ['s1', 's2', 's3', 's4']) await server(id, 1, id === 's4' ? [] : ['keep']);
    await resumeAll();
    await begin('keep');
    for (const step of await steps()) await weights.engineTold(pool, step, 60_000);
    // Redis is set back to before the pauses.
    await test.redis.del(test.key('weights:engines'), test.key('weights:sync'));
    await test.redis.hset(test.key('meta'), 'generationOf', 'another process');
    await test.rounds.due(pool);
    const limits = { suspectAfterMs: 5_000, failedAfterMs: 30_000 };
    await test.redis.zadd(test.key('servers:watched'), Date.now() - 60_000, 's3');
    expect((await test.servers.review(pool, limits)).failed).toEqual(['s3']);
    expect(await steps()).toEqual([]);
    expect(await resumeAll()).toEqual(['s1', 's2']);
    await test.servers.update(pool, { serverId: 's3', isDescribed: true });
    expect(await resumeAll(), 'answers again').toEqual(['s3']);
    expect([await steps(), await resumeAll()], 'once').toEqual([[], []]);
  });

  it('do not resume without a record while the pool is paused, because a trainer may have paused them', async () => {
    await server('s1', 1, ['keep']);
    await test.pools.pause(pool, { paused: true });
    expect(await resumes()).toEqual([]);
    await test.pools.pause(pool, { paused: false });
    expect(await resumeAll()).toEqual(['s1']);
    await server('s2', 1, ['keep']);
    const told = [...(await resumes()), ...(await resumes())].map(({ serverId }) => serverId);
    expect(told).toEqual(['s2']);
    await test.pools.pause(pool, { paused: true });
    expect([await resumes(), await resumes()], 'a call that was to be repeated').toEqual([[], []]);
    await test.pools.pause(pool, { paused: false });
    expect(await resumeAll()).toEqual(['s2']);
  });

  it('resume, then pause, when their new server is known to support a pause while weights change', async () => {
    await begin('keep');
    // Redis has lost the server and the pause of its engine.
    const { endpoint, dialect } = about;
    const lost = { serverId: 's1', endpoint, dialect, maxInflight: 8, weight: 1 };
    await test.servers.register(pool, lost);
    await test.servers.update(pool, { serverId: 's1', isDescribed: true });
    expect([await steps(), await resumes()], 'it is not known whether it can be paused').toEqual([[], []]);
    await test.servers.update(pool, { serverId: 's1', capabilities: { pauseModes: ['keep'] } });
    expect(await steps(), 'it is resumed first').toEqual([]);
    expect(await resumeAll()).toEqual(['s1']);
    expect(await steps()).toEqual([{ ...about, mode: 'keep' }]);
  });
});
