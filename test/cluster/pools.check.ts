import { randomUUID } from 'node:crypto';
import { connectRedis, FunctionRunner, PoolAudit } from '@broomwagon/state';
import { RedisCluster, waitUntil } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { examplePrompts, TRAINERS } from '../set-back/trainers';
import { findFaults } from '../system/data-set';
import { TestSystem } from '../system/test-system';

const POOLS_OF_PRIMARY = 4;
const PROMPTS = examplePrompts(12, 2);
const SAMPLES = 24;
const TIMEOUT_MS = 600_000;
const prefix = `pools-${randomUUID().slice(0, 8)}`;

let cluster: RedisCluster;
let system: TestSystem;
let pools: string[];
beforeAll(async () => {
  cluster = await RedisCluster.start({ primaries: 3, replicas: 1 });
  pools = await namesOfPools();
  system = await TestSystem.start({
    prompts: PROMPTS,
    speed: 15,
    workers: 0,
    redisUrl: cluster.url,
    keyPrefix: prefix,
    environment: { POOLS: pools.join(',') },
    registersEngines: false,
  });
  for (const pool of pools) {
    await system.registerEngines(pool);
    await system.startApp('worker', `worker-${pool}`, { POOL: pool, POOLS: pool }, () => true);
  }
}, TIMEOUT_MS);
afterAll(async () => {
  await system?.stop();
  await cluster?.stop();
});

/** Names of pools, `POOLS_OF_PRIMARY` of them on each primary. */
async function namesOfPools(): Promise<string[]> {
  const byPrimary = new Map<object, string[]>();
  for (let index = 0; [...byPrimary.values()].flat().length < 3 * POOLS_OF_PRIMARY; index++) {
    const name = `p${index}-${prefix}`;
    const primary = await cluster.findPrimary(`${prefix}:{${name}}`);
    const names = byPrimary.get(primary) ?? [];
    if (names.length < POOLS_OF_PRIMARY) byPrimary.set(primary, [...names, name]);
  }
  return [...byPrimary.values()].flat();
}

it(
  'twelve pools over three primaries, one of which is killed under load: each sample is held and counted once',
  async () => {
    const { client, folder, natsUrl } = system;
    const over = new AbortController();
    const call = async (pool: string) =>
      (await client.callWithRetry(pool, 'job.status', { job: 'j' }, { deadlineMs: 60_000 })).requests;
    const training = Promise.all(
      pools.map((pool) => TRAINERS.reference({ client, folder, natsUrl, pool }, 'j', PROMPTS, over.signal)),
    );
    training.catch(() => undefined);
    try {
      // All pools have started and none has finished.
      await waitUntil(
        async () => {
          const counts = await Promise.all(pools.map((pool) => call(pool).catch(() => undefined)));
          return counts.every((count) => count !== undefined && count.finished + count.trained > 0);
        },
        { what: 'the first sample of each pool', timeoutMs: TIMEOUT_MS / 2 },
      );
      await cluster.failOver(await cluster.findPrimary(`${prefix}:{${pools[0]!}}`));
      const ends = await training;
      expect(ends.map(({ held, error }) => ({ error, faults: findFaults('j', PROMPTS, held) }))).toEqual(
        pools.map(() => ({ error: undefined, faults: [] })),
      );
    } finally {
      over.abort();
    }
    const redis = connectRedis({ url: cluster.url });
    try {
      const audit = new PoolAudit(redis, new FunctionRunner(redis, prefix));
      for (const pool of pools) {
        await expect.poll(async () => (await call(pool)).trained).toBe(SAMPLES);
        await expect.poll(async () => (await audit.run(pool)).findings, { timeout: 60_000 }).toEqual([]);
      }
    } finally {
      redis.disconnect();
    }
  },
  TIMEOUT_MS,
);
