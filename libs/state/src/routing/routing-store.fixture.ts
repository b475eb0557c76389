import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import type { Epoch, PoolSettings } from '@broomwagon/contracts';
import { connectRedis } from '../redis';
import { FunctionRunner } from '../library/function-runner';
import { PoolStore } from '../pools/pool.store';
import type { Granted } from '../leases/grants';
import { LeaseBounds, LeaseStore, type AcquireEntry } from '../leases/lease.store';
import { ServerStore, type ServerRegistration, type ServerUpdate } from '../servers/server.store';
import { SessionStore } from '../sessions/session.store';
import { WaiterStore } from '../waiters/waiter.store';
import { WorkerStore } from '../workers/worker.store';

export type TestStore = ReturnType<typeof openTestStore>;

/** Opens stores with a new pool. */
export function openTestStore(bounds: Partial<LeaseBounds> = {}) {
  const redis = connectRedis({ url: testRedisUrl() });
  const { pool: prefix, pool } = testPool();
  const runner = new FunctionRunner(redis, prefix);
  const leases = new LeaseStore(runner, { ...new LeaseBounds(), ...bounds });
  const pools = new PoolStore(runner);
  const servers = new ServerStore(runner);
  const workers = new WorkerStore(runner);
  let sequence = 0;
  return {
    redis,
    runner,
    leases,
    pools,
    servers,
    workers,
    sessions: new SessionStore(runner),
    waiters: new WaiterStore(runner),
    pool,
    root: `${prefix}:{${pool}}`,
    /** Registers a server whose instanceId is its serverId, without probes. */
    server(serverId: string, maxInflight = 100, more: Partial<ServerRegistration> = {}) {
      return servers.register(pool, {
        serverId,
        instanceId: serverId,
        endpoint: `http://${serverId}:8000`,
        dialect: 'vllm',
        probe: false,
        maxInflight,
        weight: 1,
        weightVersion: 0,
        ...more,
      });
    },
    /** Reports that the engine has described itself to a probe. */
    describe(serverId: string, more: Partial<ServerUpdate> = {}) {
      return servers.update(pool, { serverId, isDescribed: true, ...more });
    },
    /** Changes settings and rescores all servers, as `pool.configure` does. */
    async configure(set: PoolSettings, reset: string[] = []) {
      const { revision } = await pools.configure(pool, set, reset);
      for await (const _ of servers.pages('rescore', pool));
      return pools.finish(pool, revision);
    },
    /** Starts a new epoch of a worker. */
    async worker(workerId: string, ttlMs = 60_000) {
      const { workerEpoch } = await workers.register(pool, { workerId, registrationId: `r${++sequence}`, ttlMs });
      return { workerId, workerEpoch };
    },
    /** Sends one acquire, by default with a new acquireId. */
    async acquire(worker: { workerId: string; workerEpoch: Epoch }, wanted: Partial<AcquireEntry> = {}) {
      const item = { acquireId: `acquire-${++sequence}`, requestId: 'job/group/0', ...worker, ...wanted };
      const { results } = await leases.acquire(pool, [item]);
      return { acquireId: item.acquireId, ...(results[0] as { seq: number; serverId: string; branch: string }) };
    },
    async release(acquireId: string, seq?: number, outcome?: 'finished' | 'failed') {
      return leases.release(pool, [{ acquireId, seq, outcome }]);
    },
    /** Sweeps until nothing is left. @returns number of returned leases */
    async sweep() {
      let returned = 0;
      for (let more = true; more;) {
        const page = await leases.sweep(pool);
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

/** Registers a worker for acquires. */
export async function openTestWorker(test: TestStore) {
  const holder = await test.worker('w');
  const acquire = async (wanted: Partial<AcquireEntry> = {}) =>
    (await test.acquire(holder, wanted)) as unknown as Granted & { acquireId: string; error?: string };
  return {
    holder,
    acquire,
    /** Servers of `count` acquires, one after the other. */
    async acquirePlaces(count: number, wanted: (n: number) => Partial<AcquireEntry> = () => ({})) {
      const places: string[] = [];
      for (let n = 0; n < count; n++) places.push((await acquire(wanted(n))).serverId);
      return places;
    },
  };
}
