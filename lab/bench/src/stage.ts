import { join } from 'node:path';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import {
  connectRedis,
  FunctionRunner,
  LeaseStore,
  ServerStore,
  WorkerStore,
  type RedisClient,
} from '@broomwagon/state';
import {
  freePort,
  ProcessGroup,
  provideServices,
  startRedis,
  type ServerHandle,
  type Services,
} from '@broomwagon/testing';
import { Redis } from 'ioredis';
import { LeaseBounds } from '../../../libs/state/src/leases/lease.store';
import { Child } from './child';
import { fillPool, LONG_MS } from './fill-pool';
import type { BenchWorker, Job, JobResult } from './generator/jobs';

/** Folder of the build; the compiled file is `<dist>/lab/bench/src/stage.js`. */
const DIST = join(__dirname, '..', '..', '..');
export const KEY_PREFIX = 'bench';
const PAGE = 128;

/** The state of pools in one Redis, written as the load-balancer would. */
export class PoolState {
  readonly redis: RedisClient;
  readonly leases: Pick<LeaseStore, 'acquire' | 'release'>;
  readonly servers: ServerStore;
  readonly workers: WorkerStore;

  /** @param leases lease store of another build */
  constructor(
    readonly server: ServerHandle,
    leases?: LeaseStore,
  ) {
    this.redis = connectRedis({ url: server.url, commandTimeoutMs: 60_000 });
    const runner = new FunctionRunner(this.redis, KEY_PREFIX);
    // Released leases are deleted at once, so that only the memory of live leases is measured.
    this.leases = leases ?? new LeaseStore(runner, { ...new LeaseBounds(), rememberMs: 1 });
    this.servers = new ServerStore(runner);
    this.workers = new WorkerStore(runner);
  }

  /** Registers servers with room for all leases, and workers. */
  fill(pool: string, servers: number, workers?: number): Promise<BenchWorker[]> {
    return fillPool(this, pool, servers, workers);
  }

  /** Takes so many leases and keeps them; with `withSessions`, each has a session of its own. */
  async hold(pool: string, workers: readonly BenchWorker[], count: number, withSessions = false): Promise<string[]> {
    const acquireIds = Array.from({ length: count }, (_, index) => `held-${index.toString(36)}`);
    await inPages(acquireIds, async (page, first) => {
      const items = page.map((acquireId, offset) => ({
        acquireId,
        requestId: `job/group-${first + offset}/0`,
        ...(withSessions ? { sessionId: `session-${first + offset}` } : {}),
        ...workers[(first + offset) % workers.length]!,
      }));
      const { results } = await this.leases.acquire(pool, items);
      const refused = results.find((result) => !('seq' in result));
      if (refused) throw new Error(`Not granted: ${JSON.stringify(refused)}`);
    });
    return acquireIds;
  }

  async release(pool: string, acquireIds: readonly string[]): Promise<void> {
    await inPages(acquireIds, (page) =>
      this.leases.release(
        pool,
        page.map((acquireId) => ({ acquireId })),
      ),
    );
  }

  async usedMemoryBytes(): Promise<number> {
    return Number(/used_memory:(\d+)/.exec(await this.redis.info('memory'))![1]);
  }

  async close(): Promise<void> {
    await this.redis.quit();
  }
}

/** Calls `use` for each page of the list, a few pages at a time. */
async function inPages<T>(all: readonly T[], use: (page: T[], first: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const one = async () => {
    for (let first = next; first < all.length; first = next) {
      next = first + PAGE;
      await use(all.slice(first, next), first);
    }
  };
  await Promise.all([one(), one(), one(), one()]);
}

/** NATS, Redis and the processes of a benchmark, none of them shared. */
export class Stage {
  private readonly folder = mkdtempSync(join(tmpdir(), 'broomwagon-bench-'));
  private readonly group = new ProcessGroup({ logFolder: this.folder });
  private readonly children: { stop(): void }[] = [];
  private readonly stops: (() => Promise<void>)[] = [];
  private readonly ports = new Map<string, number>();
  generator!: Child<Job | { natsUrl: string }, JobResult>;
  services!: Services;

  async start(say: (line: string) => void): Promise<void> {
    // Running servers are not used: their other work would be measured too.
    this.services = await provideServices({ say, environment: {} });
    this.stops.push(() => this.services.stop());
    this.generator = this.child('generator/generator.main.js');
    await this.generator.ask({ natsUrl: this.services.nats.url });
  }

  /** Starts a program of the benchmark. @param file path below the folder of this file */
  child<Question, Result>(file: string): Child<Question, Result> {
    const child = Child.start<Question, Result>(join(__dirname, file));
    this.children.push(child);
    return child;
  }

  /** Connects to the state in this Redis, until the stage stops. */
  state(server: ServerHandle, leases?: LeaseStore): PoolState {
    const state = new PoolState(server, leases);
    this.stops.unshift(() => state.close());
    return state;
  }

  /** Starts another Redis, with a client that the stores of any build can use. */
  async startRedis(): Promise<{ server: ServerHandle; client: Redis }> {
    const server = await startRedis();
    const client = new Redis(server.url);
    this.onStop(async () => {
      await client.quit();
      await server.stop();
    });
    return { server, client };
  }

  /** Adds something to stop at the end. */
  onStop(stop: () => Promise<void>): void {
    this.stops.unshift(stop);
  }

  /**
   * Starts one of our applications for some pools.
   *
   * @param dist folder of another build
   * @returns process id of the application
   */
  async startApp(
    app: string,
    name: string,
    pools: readonly string[],
    redis: ServerHandle,
    environment: Record<string, string> = {},
    dist = DIST,
  ): Promise<number> {
    const port = await this.choosePort();
    this.ports.set(name, port);
    const started = await this.group.start({
      name,
      command: [process.execPath, join(dist, 'apps', app, 'src', 'main.js')],
      environment: {
        NATS_URL: this.services.nats.url,
        REDIS_URL: redis.url,
        REDIS_KEY_PREFIX: KEY_PREFIX,
        POOLS: pools.join(','),
        HTTP_PORT: String(port),
        LOG_LEVEL: 'warn',
        // Same setting as in deploy/Dockerfile.
        NODE_OPTIONS: '--max-semi-space-size=64',
        // The measured windows are larger than the default of 1,024.
        MAX_IN_FLIGHT: '4096',
        ...(app === 'load-balancer' ? { PROBE_INTERVAL_MS: '600000', SERVER_FAILED_AFTER_MS: String(LONG_MS) } : {}),
        ...environment,
      },
      ready: `http://127.0.0.1:${port}/readyz`,
    });
    return started.pid!;
  }

  /** The port of an application, by the name given to {@link startApp}. */
  port(name: string): number {
    return this.ports.get(name)!;
  }

  /** Chooses a port that no application of this stage has: several may start at the same time. */
  private async choosePort(): Promise<number> {
    for (;;) {
      const port = await freePort();
      if (![...this.ports.values()].includes(port)) return port;
    }
  }

  /** Ends everything, in any state. */
  async stop(): Promise<void> {
    for (const child of this.children) child.stop();
    await this.group.stopAll(5_000).catch(() => undefined);
    for (const stop of this.stops) await stop().catch(() => undefined);
    await rm(this.folder, { recursive: true, force: true });
  }
}
