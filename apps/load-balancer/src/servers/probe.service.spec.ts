import { setImmediate as nextTurn } from 'node:timers/promises';
import { BroomwagonError } from '@broomwagon/contracts';
import type { EngineReport } from '@broomwagon/engines';
import { Alarms, loadConfig, Metrics } from '@broomwagon/platform';
import { connectRedis, FunctionRunner, ServerStore } from '@broomwagon/state';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { WaiterAnswersService } from '../waiters/waiter-answers.service';
import { LoadBalancerConfig } from '../load-balancer.config';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { SweepService } from '../upkeep/sweep.service';
import { TestEngineHealth } from '../engine.fixture';
import { EngineRecordsService } from './engine-records.service';
import { PrefixCachesService } from './prefix-caches.service';
import { ProbeService } from './probe.service';
import { ServerGauges } from './server-gauges';

const { pool: prefix } = testPool();
const redis = connectRedis({ url: testRedisUrl() });
const runner = new FunctionRunner(redis, prefix);
const servers = new ServerStore(runner);
const unavailable = new BroomwagonError('UNAVAILABLE', 'Redis does not answer');
let pool: string;
let pools = 0;
beforeEach(async () => {
  pool = `p${pools++}`;
  const about = { endpoint: 'http://a', dialect: 'vllm' as const, maxInflight: 1, weight: 1, instanceId: 'i' };
  await servers.register(pool, { serverId: 'a', ...about, capabilities: {} });
});
afterAll(async () => {
  redis.disconnect();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
});

/** An engine that answers at once and reports new weights. */
class NewWeights extends TestEngineHealth {
  override answers = () => Promise.resolve(true);
  override report = (): Promise<EngineReport> => Promise.resolve({ weightVersion: 2 });
}

/** An engine that answers at once and reports its load. */
class Loaded extends TestEngineHealth {
  probes = 0;
  override answers = () => {
    this.probes += 1;
    return Promise.resolve(true);
  };
  override report = (): Promise<EngineReport> => Promise.resolve({ load: { running: 1, waiting: 0 } });
}

function prober(
  mayTake: () => Promise<boolean>,
  store = servers,
  health: TestEngineHealth = new NewWeights(),
  intervalMs = 2_000,
): ProbeService {
  const metrics = new Metrics('load-balancer');
  const env = { NATS_URL: 'nats://x', REDIS_URL: testRedisUrl(), PROBE_INTERVAL_MS: String(intervalMs) };
  const config = loadConfig(LoadBalancerConfig, { env });
  const waiters = { sendAll: () => undefined } as unknown as WaiterAnswersService;
  const sweeper = { soon: () => undefined } as unknown as SweepService;
  const caches = { mayTake } as unknown as PrefixCachesService;
  const records = new EngineRecordsService(store, health, waiters, sweeper, caches);
  const lbMetrics = new LoadBalancerMetrics(metrics);
  const gauges = new ServerGauges(metrics, config);
  return new ProbeService(store, health, waiters, sweeper, lbMetrics, records, new Alarms(metrics), config, gauges);
}
const version = async () => (await servers.list(pool)).servers[0]!.weightVersion;

it('continues when Redis does not answer while an engine has a new report', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  let answers = false;
  const mayTake = () => (answers ? Promise.resolve(true) : Promise.reject(unavailable));
  const review = () => Promise.reject(unavailable);
  const failing = Object.assign(Object.create(servers) as ServerStore, { review });
  await expect(prober(mayTake, failing).probe(pool)).rejects.toBe(unavailable);
  const probe = prober(mayTake);
  await probe.probe(pool);
  await nextTurn();
  await nextTurn();
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
  answers = true;
  await probe.probe(pool);
  await expect.poll(version).toBe(2);
});

it('does not wait for an engine that takes long to empty its cache, and asks it once at a time', async () => {
  let asked = 0;
  let empty!: () => void;
  const emptied = new Promise<boolean>((resolve) => (empty = () => resolve(true)));
  const probe = prober(() => {
    asked++;
    return emptied;
  });
  await probe.probe(pool);
  await probe.probe(pool);
  expect([asked, await version()]).toEqual([1, 0]);
  empty();
  await expect.poll(version).toBe(2);
});

it('a server whose load another replica has just read is not probed again, except out of turn', async () => {
  const health = new Loaded();
  const replica = (intervalMs: number) => prober(() => Promise.resolve(true), servers, health, intervalMs);
  await replica(600_000).probe(pool);
  await replica(600_000).probe(pool);
  expect(health.probes).toBe(1);
  expect(await servers.list(pool)).toMatchObject({ servers: [{ load: { running: 1 } }] });
  replica(600_000).soon(pool);
  await expect.poll(() => health.probes).toBe(2);
  // The report is old once half of the interval has passed.
  const other = replica(100);
  await expect.poll(() => other.probe(pool).then(() => health.probes)).toBe(3);
});
