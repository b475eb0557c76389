import type { WeightSyncMode } from '@broomwagon/contracts';
import { Alarms, Metrics } from '@broomwagon/platform';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { connectRedis, FunctionRunner, PoolDirectory, ServerStore, WeightStore } from '@broomwagon/state';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, expect, it } from 'vitest';
import { EngineHealth } from './engine-health';
import { EnginePausesService } from './engine-pauses.service';

const redis = connectRedis({ url: testRedisUrl() });
const prefix = testPool().pool;
const runner = new FunctionRunner(redis, prefix);
const weights = new WeightStore(runner);
afterAll(async () => {
  redis.disconnect();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

/** One engine, which may be away. */
class OneEngine extends EngineHealth {
  paused = false;
  away = false;
  override answers = () => Promise.resolve(!this.away);
  override pause = async () => void (this.paused = this.reached(true));
  override resume = async () => void (this.paused = this.reached(false));

  private reached(paused: boolean): boolean {
    if (this.away) throw new Error('away');
    return paused;
  }
}

it('lets an engine of two pools go on when neither pauses it, and one that was away as soon as it is back', async () => {
  const engine = new OneEngine();
  const directory = new PoolDirectory(redis, prefix);
  const alarms = { look: () => undefined } as unknown as Alarms;
  const counts = new LoadBalancerMetrics(new Metrics('load-balancer'));
  const service = new EnginePausesService(weights, engine, directory, alarms, counts);
  const about = { endpoint: 'http://e', dialect: 'vllm' as const, maxInflight: 1, weight: 1, instanceId: 'i' };
  const capabilities = { pauseModes: ['keep' as const] };
  for (const pool of ['one', 'two']) {
    await directory.add(pool);
    await new ServerStore(runner).register(pool, { serverId: `in-${pool}`, ...about, capabilities });
    const mode: WeightSyncMode = 'keep';
    await weights.begin(pool, { syncId: pool, version: 2, mode, deadlineMs: 60_000 });
    await service.tell(pool);
  }
  expect(engine.paused).toBe(true);
  await new ServerStore(runner).remove('one', 'in-one');
  await service.tell('one');
  expect(engine.paused).toBe(true);
  expect(await weights.engineResumes('one', '0')).toMatchObject({ steps: [] });
  engine.away = true;
  await weights.end('two', { syncId: 'two', outcome: 'rolled-back', reason: 'deadline' });
  await service.tell('two');
  engine.away = false;
  await service.tell('two');
  expect(engine.paused).toBe(false);
  expect(await weights.engineSteps('two', '0')).toMatchObject({ resumes: false });
});

it('lets an engine go on when Redis has lost the record of its pause, once', async () => {
  const engine = new OneEngine();
  const directory = new PoolDirectory(redis, prefix);
  const alarms = { look: () => undefined } as unknown as Alarms;
  const service = new EnginePausesService(
    weights,
    engine,
    directory,
    alarms,
    new LoadBalancerMetrics(new Metrics('load-balancer')),
  );
  const about = { endpoint: 'http://lost', dialect: 'vllm' as const, maxInflight: 1, weight: 1, instanceId: 'i' };
  const capabilities = { pauseModes: ['keep' as const] };
  await directory.add('lost');
  await new ServerStore(runner).register('lost', { serverId: 's', ...about, capabilities });
  await weights.begin('lost', { syncId: 'first', version: 2, mode: 'keep', deadlineMs: 60_000 });
  await service.tell('lost');
  await service.tell('lost');
  expect(engine.paused).toBe(true);
  // Set back to before the change.
  await redis.del(`${runner.rootKey('lost')}:weights:engines`, `${runner.rootKey('lost')}:weights:sync`);
  await service.tell('lost');
  expect(engine.paused).toBe(false);
  // What somebody else pauses later is not ours.
  engine.paused = true;
  await service.tell('lost');
  expect(engine.paused).toBe(true);
});

it('counts an engine that could not be told for an hour once, however many replicas have paused it', async () => {
  const engine = new OneEngine();
  const directory = new PoolDirectory(redis, prefix);
  const metrics = new Metrics('load-balancer');
  const alarms = new Alarms(metrics);
  const counts = new LoadBalancerMetrics(metrics);
  const replica = () => new EnginePausesService(weights, engine, directory, alarms, counts);
  const [service, other] = [replica(), replica()];
  const capabilities = { pauseModes: ['keep' as const] };
  const about = { endpoint: 'http://gone', dialect: 'vllm' as const, maxInflight: 1, weight: 1, instanceId: 'i' };
  await new ServerStore(runner).register('three', { serverId: 's', ...about, capabilities });
  await weights.begin('three', { syncId: 'three', version: 2, mode: 'keep', deadlineMs: 60_000 });
  // A call of each, neither of them confirmed.
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
  expect(page).toMatch(/engines_given_up_total(?:{[^}]*})? 0/);
  expect(await setBack(3_700_000)).toMatch(/engines_given_up_total(?:{[^}]*})? 1/);
  // Nobody records it or tells it any more.
  engine.away = false;
  engine.paused = true;
  for (const one of [other, service, other]) await one.tell('three');
  expect(engine.paused).toBe(true);
  expect(await metrics.registry.metrics()).toMatch(/engines_given_up_total(?:{[^}]*})? 1/);
});
