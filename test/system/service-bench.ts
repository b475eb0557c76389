import {
  type EngineDialect,
  type Epoch,
  type JobStatus,
  PAUSE_MODES,
  type RequestOf,
  type TailPolicy,
} from '@broomwagon/contracts';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import type { RunningService } from '@broomwagon/platform';
import { connectRedis, PoolAudit, FunctionRunner } from '@broomwagon/state';
import { flushPrefix, testNatsUrl, testPool, testRedisUrl, waitUntil } from '@broomwagon/testing';
import { expect } from 'vitest';
import { bootstrapService } from '../../libs/platform/src/service/bootstrap';
import { type SimulatorState, startEngine, fetchState } from '../../lab/engine-simulator/src/test-engine';
import type { SimulatorOptions } from '../../lab/engine-simulator/src/simulator';
import type { LengthSource } from '../../lab/engine-simulator/src/tokens/length-source';
import { LoadBalancerConfig } from '../../apps/load-balancer/src/load-balancer.config';
import { LoadBalancerModule } from '../../apps/load-balancer/src/load-balancer.module';
import { CoordinatorConfig } from '../../apps/trainer-coordinator/src/coordinator.config';
import { CoordinatorModule } from '../../apps/trainer-coordinator/src/coordinator.module';
import { WorkerConfig } from '../../apps/worker/src/worker.config';
import { WorkerModule } from '../../apps/worker/src/worker.module';

const POLICY: TailPolicy = { name: 'resume', overProvision: 1 };
const JOB = 'job';

/**
 * A load-balancer, two replicas of the coordinator, workers and one simulated engine, all in this process, for tests
 * that check which requests are stopped, and at which moment. Each test has its own pool and engine.
 */
export class ServiceBench {
  readonly job = JOB;
  pool!: string;
  engine!: Awaited<ReturnType<typeof startEngine>>;
  private workers: RunningService<WorkerConfig>[] = [];

  private constructor(
    readonly client: TypedClient,
    readonly prefix: string,
    private readonly pools: string[],
    private readonly services: RunningService[],
  ) {}

  /** @param coordinator settings beyond short times for the sweep @param tests that may begin */
  static async open(
    coordinator: Partial<CoordinatorConfig> = {},
    tests = 24,
    balancer: Partial<LoadBalancerConfig> = {},
  ): Promise<ServiceBench> {
    const { pool: prefix } = testPool();
    const pools = Array.from({ length: tests }, (_, index) => `${prefix}-${index}`);
    const client = new TypedClient(new MessagingClient(await connectNats({ url: testNatsUrl() })));
    const shared = { ...sharedSettings(prefix), pools: [...pools] };
    const startCoordinator = () =>
      bootstrapService(CoordinatorModule, {
        app: 'trainer-coordinator',
        configType: CoordinatorConfig,
        config: Object.assign(
          new CoordinatorConfig(),
          { ...shared, sweepIntervalMs: 50, cutRepeatMs: 200 },
          coordinator,
        ),
      });
    const services = await Promise.all([
      startCoordinator(),
      startCoordinator(),
      bootstrapService(LoadBalancerModule, {
        app: 'load-balancer',
        configType: LoadBalancerConfig,
        config: Object.assign(new LoadBalancerConfig(), shared, balancer),
      }),
    ]);
    const bench = new ServiceBench(client, prefix, pools, services);
    bench.lookAfter([]);
    return bench;
  }

  /** Ends the periodic work in all other pools: dozens of empty ones would keep a core busy. `begin` names its pool. */
  lookAfter(pools: string[]): void {
    for (const { config } of this.services) config.pools = pools;
  }

  /** Prepares each test. Without `getLength` no response ends by itself within a test. */
  async begin(
    getLength: LengthSource['getLength'] = () => 8_000,
    speed = 1,
    dialect: EngineDialect = 'vllm',
    more: Partial<SimulatorOptions> = {},
  ): Promise<void> {
    this.pool = this.pools.pop()!;
    this.lookAfter([this.pool]);
    this.engine = await startEngine(dialect, { speed, lengths: { name: 'test', getLength }, ...more });
  }

  /** After each test: in-flight is zero, on the engine and in the counts. */
  async end(): Promise<void> {
    await this.closeWorkers();
    const isAtRest = async () => {
      const counts = await this.inflight();
      if (Object.values(counts).every((count) => count === 0)) return true;
      throw new Error(JSON.stringify(counts));
    };
    await waitUntil(isAtRest, { what: 'no request in flight', timeoutMs: 30_000 });
    await this.engine.close();
  }

  async close(): Promise<void> {
    for (const service of this.services) await service.close();
    await this.client.messaging.connection.close();
    await flushPrefix(testRedisUrl(), `${this.prefix}:`);
  }

  async startWorker(settings: Partial<WorkerConfig> = {}): Promise<RunningService<WorkerConfig>> {
    const config = Object.assign(new WorkerConfig(), sharedSettings(this.prefix), {
      pool: this.pool,
      workerId: 'w1',
      // A busy machine may stand still for seconds.
      workerTtlMs: 6_000,
      claimWaitMs: 500,
      drainMs: 20,
      partialSaveIntervalMs: 60_000,
      ...settings,
    });
    // Two heartbeats find a lost lease, which would take four seconds with the pause of this time to live.
    Object.defineProperty(config, 'heartbeatIntervalMs', { value: 250 });
    const worker = await bootstrapService(WorkerModule, {
      app: 'worker',
      config,
      configType: WorkerConfig,
      transport: ({ workerId }) => ({ placeholders: { workerId } }),
    });
    this.workers.push(worker);
    return worker;
  }

  async closeWorkers(): Promise<void> {
    await Promise.all(this.workers.splice(0).map((worker) => worker.close()));
  }

  /** The engine as server s1. */
  async register(more: Partial<RequestOf<'server.register'>> = {}): Promise<void> {
    const { url: endpoint } = this.engine;
    const engine = { dialect: 'vllm' as const, capabilities: { pauseModes: [...PAUSE_MODES], cacheSalt: true } };
    const body = { serverId: 's1', endpoint, instanceId: 'i1', maxInflight: 64, ...engine, ...more };
    await this.client.call(this.pool, 'server.register', body);
  }

  /** Opens a round of `count` groups and submits them. Returns the trainer's epoch. */
  async submit(count: number, samples = 2, orphanAfterMs?: number): Promise<Epoch> {
    const trainerEpoch = await this.openRound(count, orphanAfterMs);
    await this.submitGroups(
      trainerEpoch,
      Array.from({ length: count }, (_, index) => index),
      samples,
    );
    return trainerEpoch;
  }

  /** Returns the trainer's epoch. */
  async openRound(count: number, orphanAfterMs?: number): Promise<Epoch> {
    const wanted = { job: JOB, groupsPerStep: count, remainingGroups: count, policy: POLICY };
    const { kind, ...plan } = await this.client.call(this.pool, 'round.next', wanted);
    const round = { job: JOB, roundId: 'r1' };
    const opening = { ...round, ...plan, kind: kind as 'short', policy: POLICY, weightVersion: 0, orphanAfterMs };
    const { trainerEpoch } = await this.client.call(this.pool, 'round.open', opening);
    return trainerEpoch;
  }

  /** Groups `g<index>` of the open round. */
  async submitGroups(trainerEpoch: Epoch, indexes: number[], samples = 2): Promise<void> {
    const groups = indexes.map((index) => ({
      groupId: `g${index}`,
      samples,
      maxTokens: 8_000,
      prompt: { text: `What is ${index}?` },
    }));
    await this.client.call(this.pool, 'round.submit', { job: JOB, roundId: 'r1', trainerEpoch, groups });
  }

  /** Waits until the round has a group, and reads the tokens of its samples. */
  async tokensOfGroup(): Promise<number[][]> {
    const page = { job: JOB, roundId: 'r1' };
    const results = async () => (await this.client.call(this.pool, 'round.results', page)).groups;
    await expect.poll(async () => (await results()).length).toBe(1);
    const [group] = await results();
    const samples = group!.samples.toSorted((one, another) => one.sampleIndex - another.sampleIndex);
    return Promise.all(
      samples.map(async ({ segments }) => {
        const parts = segments.map(async ({ ref }) => {
          const { data } = await this.client.call(this.pool, 'payload.get', { ref });
          return (JSON.parse(Buffer.from(data, 'base64').toString('utf8')) as { tokenIds: number[] }).tokenIds;
        });
        return (await Promise.all(parts)).flat();
      }),
    );
  }

  /** Findings of the audit: faults of leases, waiters, sessions and counts of the pool. */
  async findings(): Promise<object[]> {
    const redis = connectRedis({ url: testRedisUrl() });
    try {
      const report = await new PoolAudit(redis, new FunctionRunner(redis, this.prefix)).run(this.pool);
      return report.findings;
    } finally {
      redis.disconnect();
    }
  }

  async inflight(): Promise<{ engine: number; leases: number; waiters: number }> {
    const { running, waiting } = await this.engineState();
    const { leases, waiters } = await this.client.call(this.pool, 'lb.status', {});
    return { engine: running + waiting, leases, waiters };
  }

  /** A counter summed over all replicas, by its name and labels as `/metrics` writes them. */
  async metric(name: string): Promise<number> {
    const pages = this.services.map(async ({ httpPort }) =>
      (await fetch(`http://127.0.0.1:${httpPort}/metrics`)).text(),
    );
    const lines = (await Promise.all(pages)).flatMap((page) => page.split('\n'));
    const values = lines.filter((line) => line.startsWith(`broomwagon_${name}`)).map((line) => line.split(' ').at(-1));
    return values.reduce((sum, value) => sum + Number(value), 0);
  }

  engineState(): Promise<SimulatorState> {
    return fetchState(this.engine.url);
  }

  counts(): Promise<JobStatus> {
    return this.client.call(this.pool, 'job.status', { job: JOB });
  }

  /** Waits until `count` requests run on the engine. */
  async running(count: number): Promise<void> {
    await expect.poll(async () => (await this.engineState()).running).toBe(count);
  }

  /** Waits until each request on the engine has at least `least` tokens. */
  async made(least: number): Promise<void> {
    await expect
      .poll(async () => Math.min(...liveRows(await this.engineState()).map((row) => row.made)))
      .toBeGreaterThanOrEqual(least);
  }
}

/** Requests that run or wait in the engine. */
export function liveRows({ table }: SimulatorState): SimulatorState['table'] {
  return table.filter((row) => row.state === 'running' || row.state === 'waiting');
}

function sharedSettings(prefix: string) {
  return { natsUrl: testNatsUrl(), redisUrl: testRedisUrl(), redisKeyPrefix: prefix, logLevel: 'silent' as const };
}
