import type { RebalanceSettings, ServerStatus } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import { connectRedis, FunctionRunner, MoveStore } from '@broomwagon/state';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CoordinatorMetrics } from '../coordinator.metrics';
import type { MoveSenderService } from './move-sender.service';
import { RebalanceWatchService } from './rebalance-watch.service';
import { REBALANCE_DEFAULTS } from './rebalance-settings';
import type { RebalanceService } from './rebalance.service';

const { pool: prefix } = testPool();
const redis = connectRedis({ url: testRedisUrl() });
const runner = new FunctionRunner(redis, prefix);
const store = new MoveStore(runner);
let pool: string;
let pools = 0;
let settings: RebalanceSettings;
/** Requests on each server. */
let inflight: Record<string, number>;
let makePlan: () => Promise<object>;
let plans: number;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
  pool = `${prefix}-${pools++}`;
  settings = { ...REBALANCE_DEFAULTS, mode: 'on', minPlanIntervalMs: 60_000 };
  inflight = { a: 8, b: 8 };
  plans = 0;
  makePlan = async () => ({ moves: [], reason: 'balanced' });
});
afterEach(() => vi.useRealTimers());
afterAll(async () => {
  await flushPrefix(testRedisUrl(), prefix);
  await redis.quit();
});

function watch(): RebalanceWatchService {
  const rebalance = {
    watched: async () => ({ settings, plannedAtMs: (await store.settings(pool)).plannedAtMs }),
    settings: async () => settings,
    servers: async () =>
      Object.entries(inflight).map(([serverId, calls]) => ({
        serverId,
        epoch: 'e1',
        state: 'ready',
        inflight: calls,
      })) as ServerStatus[],
    makePlan: () => {
      plans += 1;
      return makePlan();
    },
  };
  return new RebalanceWatchService(
    store,
    rebalance as unknown as RebalanceService,
    {} as MoveSenderService,
    new CoordinatorMetrics(new Metrics('test')),
  );
}
const endTurn = () => redis.del(`${runner.rootKey(pool)}:rebalance:turn`);

it('plans again when the plan for a trigger has failed, and no earlier than its next turn', async () => {
  const replica = watch();
  await replica.look(pool);
  inflight = { a: 8, b: 0 };
  makePlan = () => Promise.reject(new Error('Redis is away'));
  await expect(replica.look(pool)).rejects.toThrow('Redis is away');
  for (let look = 0; look < 3; look++) await replica.look(pool);
  expect(plans).toBe(1);
  makePlan = async () => ({ moves: [], reason: 'balanced' });
  for (let turn = 0; turn < 3; turn++) {
    await endTurn();
    await replica.look(pool);
  }
  expect(plans).toBe(2);
});

it('makes one plan for all replicas, for a trigger and at the interval', async () => {
  settings = { ...settings, policy: 'tier-min', planIntervalSteps: 1_000 };
  const replicas = [watch(), watch()];
  const lookAll = async () => {
    for (const replica of replicas) await replica.look(pool);
  };
  const later = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1_000);
  await lookAll();
  later(600);
  await lookAll();
  for (let turn = 0; turn < 3; turn++) {
    await endTurn();
    later(2);
    await lookAll();
  }
  expect(plans).toBe(1);

  settings = { ...settings, planIntervalSteps: 0, planIntervalMs: 60_000 };
  inflight = { a: 8, b: 0 };
  for (let turn = 0; turn < 3; turn++) {
    await endTurn();
    later(5);
    await lookAll();
  }
  expect(plans).toBe(2);
  // The interval also holds for a replica that has not tried to plan itself.
  later(51);
  replicas.reverse();
  await lookAll();
  expect(plans).toBe(3);
  await endTurn();
  await lookAll();
  // Real time passes as well, some seconds on a busy machine.
  later(30);
  await lookAll();
  expect(plans).toBe(3);
});

it('leaves a trigger to another replica when the plan of one has failed', async () => {
  const [broken, whole] = [watch(), watch()];
  for (const replica of [broken, whole]) await replica.look(pool);
  inflight = { a: 8, b: 0 };
  makePlan = () => Promise.reject(new Error('Redis is away'));
  await expect(broken.look(pool)).rejects.toThrow('Redis is away');
  makePlan = async () => ({ moves: [], reason: 'balanced' });
  await whole.look(pool);
  expect(plans).toBe(1);
  await endTurn();
  for (const replica of [whole, broken, whole]) await replica.look(pool);
  expect(plans).toBe(2);
  await endTurn();
  await broken.look(pool);
  expect(plans).toBe(2);
});
