import { type Epoch, type OperationName, type ReplyOf, type RequestOf, buildSubject } from '@broomwagon/contracts';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import { loadConfig, type RunningService } from '@broomwagon/platform';
import { connectRedis, PoolAudit, FunctionRunner } from '@broomwagon/state';
import { flushPrefix, testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { expect } from 'vitest';
import { bootstrapService } from '../../../libs/platform/src/service/bootstrap';
import { TestEngine } from './engine.fixture';
import { LoadBalancerConfig } from './load-balancer.config';
import { LoadBalancerModule } from './load-balancer.module';

/** Worker epoch of the tests. */
export interface TestWorker {
  workerId: string;
  workerEpoch: Epoch;
}

/** Replicas, client and helpers that {@link openLoadBalancers} returns. */
export type LoadBalancers = Awaited<ReturnType<typeof openLoadBalancers>>;

/** Opens replicas of the load-balancer, a healthy engine and a client, with pools of their own. */
export async function openLoadBalancers(count: number, env: Record<string, string> = {}) {
  const { pool: keyPrefix } = testPool();
  /** The pools with periodic work: in unused pools it would keep a core busy with nothing. */
  const used = [`${keyPrefix}-0`];
  const start = async (): Promise<RunningService<LoadBalancerConfig>> => {
    const config = loadConfig(LoadBalancerConfig, {
      env: {
        NATS_URL: testNatsUrl(),
        REDIS_URL: testRedisUrl(),
        REDIS_KEY_PREFIX: keyPrefix,
        LOG_LEVEL: 'silent',
        MAX_IN_FLIGHT: '4096',
        PROBE_INTERVAL_MS: '400',
        UPKEEP_INTERVAL_MS: '50',
        ...env,
      },
    });
    // No other test's load-balancer may answer for ours: a queue group of its own pools.
    config.pools = Array.from({ length: 20 }, (_, n) => `${keyPrefix}-${n}`);
    const service = await bootstrapService(LoadBalancerModule, { app: 'load-balancer', config });
    config.pools = used;
    return service;
  };
  const engine = await TestEngine.start();
  const replicas = await Promise.all(Array.from({ length: count }, start));
  const client = new TypedClient(new MessagingClient(await connectNats({ url: testNatsUrl() })));
  const redis = connectRedis({ url: testRedisUrl() });
  let sequence = 0;
  const opened = {
    pool: used[0]!,
    client,
    engine,
    replicas,
    redis,
    start,
    /** Switches to a new pool. */
    nextPool() {
      opened.pool = `${keyPrefix}-${used.length}`;
      used.push(opened.pool);
    },
    call<Name extends OperationName>(operation: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> {
      // Longer than a busy machine stalls.
      return client.call(opened.pool, operation, body, { timeoutMs: 60_000 });
    },
    /** Sends any body, also an invalid one. */
    request(operation: OperationName, body: object) {
      return client.messaging.request(buildSubject(opened.pool, operation), body);
    },
    async worker(workerId = 'w', ttlMs = 60_000): Promise<TestWorker> {
      const registrationId = `r${sequence++}`;
      const { workerEpoch } = await opened.call('worker.register', { workerId, registrationId, ttlMs });
      return { workerId, workerEpoch };
    },
    /**
     * Registers a server on the test engine, unless `more` names another endpoint. Waits until a healthy engine has
     * described itself.
     */
    async server(serverId: string, maxInflight = 100, more: object = {}) {
      const registration = { serverId, endpoint: engine.url, dialect: 'vllm' as const, instanceId: serverId };
      const reply = await opened.call('server.register', { ...registration, maxInflight, ...more });
      const isWell = !('endpoint' in more) && !engine.hangs && engine.status === 200 && engine.delayMs === 0;
      if (!isWell || reply.state !== 'pending') return reply;
      const stateNow = async () => (await opened.call('server.get', { serverId })).state;
      await expect.poll(stateNow).not.toBe('pending');
      return { ...reply, state: await stateNow() };
    },
    acquire(by: TestWorker, more: object = {}) {
      const item = { acquireId: `a${sequence++}`, requestId: 'job/g/0', ...by, ...more };
      return opened.call('lb.acquire', item);
    },
    release(leaseId: string) {
      return opened.call('lb.release', { leaseId, outcome: 'finished' });
    },
    status: () => opened.call('lb.status', {}),
    async list() {
      const { servers } = await opened.call('server.list', {});
      return new Map(servers.map((server) => [server.serverId, server]));
    },
    /** The metrics of each replica. */
    metrics: () =>
      Promise.all(replicas.map(async ({ httpPort }) => (await fetch(`http://127.0.0.1:${httpPort}/metrics`)).text())),
    audit: () => new PoolAudit(redis, new FunctionRunner(redis, keyPrefix)).run(opened.pool),
    async close() {
      await Promise.all(replicas.map((replica) => replica.close()));
      await client.messaging.connection.close();
      engine.stop();
      redis.disconnect();
      await flushPrefix(testRedisUrl(), `${keyPrefix}:`);
    },
  };
  return opened;
}
