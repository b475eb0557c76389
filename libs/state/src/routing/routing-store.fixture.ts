import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { connectRedis } from '../redis';
import { ScriptRunner } from '../scripts/script-runner';
import { RoutingStore } from './routing.store';
import { ROUTING_BOUNDS, type AcquireEntry, type RoutingBounds } from './routing.types';

/** A store with one pool of its own. */
export function openTestStore(bounds: Partial<RoutingBounds> = {}) {
  const redis = connectRedis({ url: testRedisUrl() });
  const { pool: prefix, pool } = testPool();
  const runner = new ScriptRunner(redis, prefix);
  const store = new RoutingStore(runner, { ...ROUTING_BOUNDS, ...bounds });
  let sequence = 0;
  return {
    redis,
    runner,
    store,
    pool,
    root: `${prefix}:{${pool}}`,
    /** Registers a server with an instanceId of its own name. */
    server(serverId: string, maxInflight = 100, more: { weight?: number; weightVersion?: number } = {}) {
      return store.registerServer(pool, {
        serverId,
        instanceId: serverId,
        endpoint: `http://${serverId}:8000`,
        dialect: 'vllm',
        maxInflight,
        weight: 1,
        weightVersion: 0,
        ...more,
      });
    },
    /** A fresh epoch of the worker. */
    async worker(workerId: string, ttlMs = 60_000) {
      const { workerEpoch } = await store.registerWorker(pool, { workerId, registrationId: `r${++sequence}`, ttlMs });
      return { workerId, workerEpoch };
    },
    /** One acquire; its acquireId is new unless given. */
    async acquire(worker: { workerId: string; workerEpoch: number }, wish: Partial<AcquireEntry> = {}) {
      const item = { acquireId: `acquire-${++sequence}`, requestId: 'job/group/0', ...worker, ...wish };
      const { results } = await store.acquire(pool, [item]);
      return { acquireId: item.acquireId, ...(results[0] as { seq: number; serverId: string; branch: string }) };
    },
    async release(acquireId: string, seq?: number, outcome?: 'finished' | 'failed') {
      return store.release(pool, [{ acquireId, seq, outcome }]);
    },
    /** Sweeps until nothing is left; the number of leases returned. */
    async sweep() {
      let returned = 0;
      for (let more = true; more;) {
        const page = await store.sweep(pool);
        returned += page.returned;
        ({ more } = page);
      }
      return returned;
    },
    async close() {
      await redis.quit();
      await flushPrefix(testRedisUrl(), `${prefix}:`);
    },
  };
}
