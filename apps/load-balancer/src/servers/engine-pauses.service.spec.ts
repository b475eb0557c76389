import { Alarms, Metrics } from '@broomwagon/platform';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import type { EngineAdapter } from '@broomwagon/engines';
import { connectRedis, FunctionRunner, PoolDirectory, RoundStore, ServerStore, WeightStore } from '@broomwagon/state';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, expect, it } from 'vitest';
import { TestEngineHealth } from '../engine.fixture';
import type { EngineHealth } from './engine-health';
import { EnginePausesService } from './engine-pauses.service';

const redis = connectRedis({ url: testRedisUrl() });
const prefix = testPool().pool;
const runner = new FunctionRunner(redis, prefix);
const weights = new WeightStore(runner);
const rounds = new RoundStore(runner);
const servers = new ServerStore(runner);
afterAll(async () => {
  redis.disconnect();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

const directory = new PoolDirectory(redis, prefix);
const capabilities = { pauseModes: ['keep' as const] };
const server = { dialect: 'vllm' as const, maxInflight: 1, weight: 1, instanceId: 'i', capabilities };
const begin = (pool: string) => weights.begin(pool, { syncId: pool, version: 2, mode: 'keep', deadlineMs: 60_000 });

function replica(engine: EngineHealth, metrics = new Metrics('load-balancer')): EnginePausesService {
  return new EnginePausesService(weights, engine, directory, new Alarms(metrics), new LoadBalancerMetrics(metrics));
}

/** One engine, which may be unreachable. */
class OneEngine extends TestEngineHealth {
  paused = false;
  away = false;
  override answers = () => Promise.resolve(!this.away);
  override getAdapter = () =>
    ({
      pause: async () => void (this.paused = this.reached(true)),
      resume: async () => void (this.paused = this.reached(false)),
    }) as unknown as EngineAdapter;

  private reached(paused: boolean): boolean {
    if (this.away) throw new Error('away');
    return paused;
  }
}

it('resumes an engine of two pools when neither pauses it, and an unreachable engine as soon as it answers', async () => {
  const engine = new OneEngine();
  const service = replica(engine);
  for (const pool of ['one', 'two']) {
    await directory.add(pool);
    await servers.register(pool, { serverId: `in-${pool}`, endpoint: 'http://e', ...server });
    await begin(pool);
    await service.tell(pool);
  }
  expect(engine.paused).toBe(true);
  await servers.remove('one', { serverId: 'in-one' });
  await service.tell('one');
  expect(engine.paused).toBe(true);
  expect(await weights.engineResumes('one', {})).toMatchObject({ steps: [] });
  engine.away = true;
  await weights.end('two', { syncId: 'two', outcome: 'rolled-back', reason: 'deadline' });
  await service.tell('two');
  engine.away = false;
  await service.tell('two');
  expect(engine.paused).toBe(false);
  expect(await weights.engineSteps('two', {})).toMatchObject({ resumes: false });
});

it.each(['the same replica', 'another replica, after a new generation'])(
  'resumes an engine, once, when Redis has lost the record of its pause: %s',
  async (who) => {
    const engine = new OneEngine();
    const service = replica(engine);
    const isKilled = who !== 'the same replica';
    const pool = isKilled ? 'killed' : 'lost';
    await directory.add(pool);
    await rounds.due(pool);
    await servers.register(pool, { serverId: 's', endpoint: `http://${pool}`, ...server });
    await servers.update(pool, { serverId: 's', isDescribed: true });
    await begin(pool);
    await expect.poll(() => service.tell(pool).then(() => engine.paused)).toBe(true);
    const root = runner.rootKey(pool);
    await redis.del(`${root}:weights:engines`, `${root}:weights:sync`);
    if (isKilled) {
      await redis.hset(`${root}:meta`, 'generationOf', 'another process');
      await rounds.due(pool);
    }
    const next = isKilled ? replica(engine) : service;
    await next.tell(pool);
    expect(engine.paused).toBe(false);
    // A later pause by somebody else is left alone.
    engine.paused = true;
    await next.tell(pool);
    expect(engine.paused).toBe(true);
  },
);

it('counts an engine that could not be resumed for an hour once, however many replicas have paused it', async () => {
  const engine = new OneEngine();
  const metrics = new Metrics('load-balancer');
  const [service, other] = [replica(engine, metrics), replica(engine, metrics)];
  await servers.register('three', { serverId: 's', endpoint: 'http://gone', ...server });
  await begin('three');
  // Both replicas call the engine, and neither call is confirmed.
  engine.away = true;
  for (const one of [service, other]) await one.tell('three');
  await weights.end('three', { syncId: 'three', outcome: 'rolled-back', reason: 'deadline' });
  await service.tell('three');
  const paused = `${runner.rootKey('three')}:weights:engines`;
  const [[name, entry]] = Object.entries(await redis.hgetall(paused)) as [[string, string]];
  const setBack = async (ms: number) => {
    const at = { ...(JSON.parse(entry) as object), resumeAtMs: Date.now() - ms };
    await redis.hset(paused, name, JSON.stringify(at));
    await service.tell('three');
    return metrics.registry.metrics();
  };
  const page = await setBack(120_000);
  expect(page).toMatch(/alarms_total{[^}]*alarm="engines-paused"[^}]*} 1/);
  expect(page).not.toMatch(/engines_given_up_total{[^}]*} [1-9]/);
  expect(await setBack(3_700_000)).toMatch(/engines_given_up_total(?:{[^}]*})? 1/);
  // The engine is neither recorded nor published any more.
  engine.away = false;
  engine.paused = true;
  for (const one of [other, service, other]) await one.tell('three');
  expect(engine.paused).toBe(true);
  expect(await metrics.registry.metrics()).toMatch(/engines_given_up_total(?:{[^}]*})? 1/);
});
