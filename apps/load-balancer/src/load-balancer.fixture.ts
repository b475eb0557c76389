import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import { bootstrapService, loadConfig, type RunningService } from '@broomwagon/platform';
import { connectRedis, PoolAudit, ScriptRunner } from '@broomwagon/state';
import { flushPrefix, testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { LoadBalancerConfig } from './load-balancer.config';
import { LoadBalancerModule } from './load-balancer.module';

/** Worker epoch of the tests. */
export interface TestWorker {
  workerId: string;
  workerEpoch: number;
}

const ABOUT: Record<string, string> = {
  '/version': '{"version":"0.11.0"}',
  '/v1/models': '{"data":[{"id":"tiny","max_model_len":4096}]}',
};

/** An engine that is well, with a metrics page of vLLM. */
export class MeteredEngine {
  metrics = { running: 0, waiting: 0, kvUse: 0, preemptions: 0 };
  private constructor(private readonly server: Server) {}

  static async start(): Promise<MeteredEngine> {
    const server: Server = createServer((request, response) => {
      response.writeHead(200).end(request.url === '/metrics' ? engine.page() : ABOUT[request.url!]);
    });
    const engine = new MeteredEngine(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return engine;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private page(): string {
    const { running, waiting, kvUse, preemptions } = this.metrics;
    return [
      `vllm:num_requests_running ${running}`,
      `vllm:num_requests_waiting ${waiting}`,
      `vllm:kv_cache_usage_perc ${kvUse}`,
      `vllm:num_preemptions_total ${preemptions}`,
    ].join('\n');
  }
}

/** Some replicas of the load-balancer, a client, and pools of their own. */
export async function openLoadBalancers(count: number, env: Record<string, string> = {}) {
  const { pool: keyPrefix } = testPool();
  const start = (): Promise<RunningService<LoadBalancerConfig>> => {
    const config = loadConfig(LoadBalancerConfig, {
      env: {
        NATS_URL: testNatsUrl(),
        REDIS_URL: testRedisUrl(),
        REDIS_KEY_PREFIX: keyPrefix,
        LOG_LEVEL: 'silent',
        MAX_IN_FLIGHT: '4096',
        PROBE_INTERVAL_MS: '200',
        UPKEEP_INTERVAL_MS: '50',
        ...env,
      },
    });
    // No other test's load-balancer may answer for ours: a queue group of its own pools.
    config.pools = Array.from({ length: 20 }, (_, n) => `${keyPrefix}-${n}`);
    return bootstrapService(LoadBalancerModule, { app: 'load-balancer', config });
  };
  const replicas = await Promise.all(Array.from({ length: count }, start));
  const client = new TypedClient(new MessagingClient(await connectNats({ url: testNatsUrl() })));
  const redis = connectRedis({ url: testRedisUrl() });
  let sequence = 0;
  let pools = 0;
  const opened = {
    pool: `${keyPrefix}-0`,
    client,
    replicas,
    start,
    /** Another pool from here on. */
    nextPool() {
      opened.pool = `${keyPrefix}-${++pools}`;
    },
    async worker(workerId = 'w', ttlMs = 60_000): Promise<TestWorker> {
      const registrationId = `r${sequence++}`;
      const { workerEpoch } = await client.call(opened.pool, 'worker.register', { workerId, registrationId, ttlMs });
      return { workerId, workerEpoch };
    },
    server(serverId: string, endpoint: string, maxInflight = 100, more: object = {}) {
      const registration = { serverId, endpoint, dialect: 'vllm' as const, instanceId: serverId, maxInflight };
      return client.call(opened.pool, 'server.register', { ...registration, ...more });
    },
    acquire(by: TestWorker, more: object = {}) {
      const item = { acquireId: `a${sequence++}`, requestId: 'job/g/0', ...by, ...more };
      return client.call(opened.pool, 'lb.acquire', item);
    },
    release(leaseId: string) {
      return client.call(opened.pool, 'lb.release', { leaseId, outcome: 'finished' });
    },
    status: () => client.call(opened.pool, 'lb.status', {}),
    async list() {
      const { servers } = await client.call(opened.pool, 'server.list', {});
      return new Map(servers.map((server) => [server.serverId, server]));
    },
    audit: () => new PoolAudit(redis, new ScriptRunner(redis, keyPrefix)).run(opened.pool),
    async close() {
      await Promise.all(replicas.map((replica) => replica.close()));
      await client.messaging.connection.close();
      redis.disconnect();
      await flushPrefix(testRedisUrl(), `${keyPrefix}:`);
    },
  };
  return opened;
}
