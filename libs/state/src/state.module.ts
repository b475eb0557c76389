import {
  ConfigurableModuleBuilder,
  type FactoryProvider,
  Global,
  Inject,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { isBroomwagonError } from '@broomwagon/contracts';
import { Redis } from 'ioredis';
import { AbortStore } from './aborts/abort.store';
import { PoolAudit } from './audit';
import { SnapshotStore } from './snapshots/snapshot.store';
import { PartialOwnerStore } from './partials/partial-owner.store';
import { PartialStore } from './partials/partial.store';
import { CredentialStore } from './credentials/credential.store';
import { InspectionStore } from './inspection/inspection.store';
import { JobStore } from './jobs';
import { LedgerStore, PromptMemoryStore } from './ledger';
import { type CallMetrics, FunctionRunner, theLibrary } from './library/function-runner';
import { LibraryUpkeep } from './library/library-upkeep';
import { ReplicaMarks, SCHEMA_VERSION } from './library/schema-version';
import { LeaseBounds, LeaseStore } from './leases/lease.store';
import { LongtailStore } from './longtail/longtail.store';
import { MoveStore } from './moves/move.store';
import { connectRedis, type RedisConnectionOptions } from './redis';
import { checkRedisAccess } from './redis-access';
import { RedisLink } from './redis-link';
import { listPrimaries, type RedisClient } from './redis-cluster';
import { RedisMemory } from './redis-memory';
import { RemovalStore } from './removals/removal.store';
import { ReplyStore } from './replies/reply.store';
import { ClaimBounds, RequestStore } from './requests/request.store';
import { EventOutbox, RoundStore } from './rounds';
import { PoolDirectory, PoolStore } from './pools';
import { ServerStore } from './servers/server.store';
import { SessionStore } from './sessions/session.store';
import { TrajectoryStore } from './trajectories/trajectory.store';
import { WaiterStore } from './waiters/waiter.store';
import { WeightStore } from './weights/weight.store';
import { WorkerStore } from './workers/worker.store';

/** Options of the state of an app, and the readiness and metrics to which it reports. */
export interface StateOptions extends RedisConnectionOptions {
  /** First part of every key. */
  keyPrefix: string;
  leases?: Partial<LeaseBounds>;
  claims?: Partial<ClaimBounds>;
  /** Collects checks of everything the app needs. */
  readiness: {
    addReadiness(name: string, check: () => Promise<unknown>): void;
    /** Ends the process, because only a restart helps. */
    requestRestart(reason: Error): void;
  };
  metrics: {
    gauge(name: string, help: string): { set(value: number): void };
    /** A gauge whose value disappears when it was not set for some time. */
    readGauge(name: string, help: string): { set(value: number): void };
    counter(name: string, help: string, labels: string[]): { inc(labels: Record<string, string>): void };
    histogram(
      name: string,
      help: string,
      labels: string[],
      buckets: number[],
    ): { observe(labels: Record<string, string>, value: number): void };
  };
}

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<StateOptions>()
  .setClassMethodName('forRoot')
  .build();

/** Buckets of the time of calls, seconds. There are fewer than usual, because there are over a hundred transitions. */
const CALL_BUCKETS_S = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1];

/** Stores that need only other providers of the module. */
const STORES = [
  AbortStore,
  SnapshotStore,
  InspectionStore,
  JobStore,
  LeaseStore,
  LedgerStore,
  LongtailStore,
  MoveStore,
  PartialOwnerStore,
  PoolStore,
  PromptMemoryStore,
  RemovalStore,
  RequestStore,
  RoundStore,
  ServerStore,
  SessionStore,
  TrajectoryStore,
  WaiterStore,
  WeightStore,
  WorkerStore,
];

function createMemory(redis: RedisClient, { metrics }: StateOptions): RedisMemory {
  const ratio = metrics.readGauge(
    'redis_memory_ratio',
    'Memory of Redis / its maxmemory; from 0.9: new work is refused',
  );
  return new RedisMemory(redis, 'Redis', ({ usedBytes, maxBytes }) =>
    ratio.set(maxBytes > 0 ? usedBytes / maxBytes : 0),
  );
}

function createCallMetrics({ metrics }: StateOptions): CallMetrics {
  metrics.gauge('schema_version', 'Layout in which this build stores pools').set(SCHEMA_VERSION);
  const help = 'Time from the call of a transition to its reply';
  const seconds = metrics.histogram('redis_call_seconds', help, ['transition'], CALL_BUCKETS_S);
  const errors = metrics.counter('redis_errors_total', 'Calls of transitions that failed, by error code', ['code']);
  return {
    took: (transition, duration) => seconds.observe({ transition }, duration),
    failed: (code) => errors.inc({ code }),
  };
}

/** A provider that needs only the connection and the first part of every key. */
function onKeys<T>(Provider: new (redis: RedisClient, keyPrefix: string) => T): FactoryProvider<T> {
  return {
    provide: Provider,
    inject: [Redis, MODULE_OPTIONS_TOKEN],
    useFactory: (redis: RedisClient, { keyPrefix }: StateOptions) => new Provider(redis, keyPrefix),
  };
}

/**
 * The connection of an app to Redis and all stores: part of the readiness of the app, closed last, after the transport
 * has drained.
 */
@Global()
@Module({
  providers: [
    ...STORES,
    {
      provide: Redis,
      inject: [MODULE_OPTIONS_TOKEN],
      useFactory: (options: StateOptions) => connectRedis(options),
    },
    { provide: RedisMemory, inject: [Redis, MODULE_OPTIONS_TOKEN], useFactory: createMemory },
    {
      provide: FunctionRunner,
      inject: [Redis, MODULE_OPTIONS_TOKEN, RedisMemory],
      useFactory: (redis: RedisClient, options: StateOptions, memory: RedisMemory) =>
        new FunctionRunner(redis, options.keyPrefix, memory, theLibrary(), createCallMetrics(options)),
    },
    {
      provide: LeaseBounds,
      inject: [MODULE_OPTIONS_TOKEN],
      useFactory: ({ leases }: StateOptions) => Object.assign(new LeaseBounds(), leases),
    },
    {
      provide: ClaimBounds,
      inject: [MODULE_OPTIONS_TOKEN],
      useFactory: ({ claims }: StateOptions) => Object.assign(new ClaimBounds(), claims),
    },
    onKeys(PoolDirectory),
    onKeys(CredentialStore),
    onKeys(PartialStore),
    onKeys(ReplyStore),
    onKeys(EventOutbox),
    onKeys(ReplicaMarks),
    {
      provide: PoolAudit,
      inject: [Redis, FunctionRunner],
      useFactory: (redis: RedisClient, runner: FunctionRunner) => new PoolAudit(redis, runner),
    },
    {
      provide: LibraryUpkeep,
      inject: [Redis, ReplicaMarks],
      useFactory: (redis: RedisClient, marks: ReplicaMarks) => new LibraryUpkeep(redis, marks),
    },
  ],
  exports: [
    ...STORES,
    Redis,
    RedisMemory,
    FunctionRunner,
    PoolDirectory,
    CredentialStore,
    PartialStore,
    ReplyStore,
    EventOutbox,
    PoolAudit,
  ],
})
export class StateModule extends ConfigurableModuleClass implements OnModuleInit, OnApplicationShutdown {
  constructor(
    @Inject(MODULE_OPTIONS_TOKEN) private readonly options: StateOptions,
    @Inject(Redis) private readonly redis: RedisClient,
    private readonly memory: RedisMemory,
    private readonly library: LibraryUpkeep,
    private readonly marks: ReplicaMarks,
    private readonly directory: PoolDirectory,
    private readonly pools: PoolStore,
  ) {
    super();
  }

  /**
   * @throws BroomwagonError UNAVAILABLE when Redis refuses this client, SCHEMA_UNSUPPORTED. An unavailable Redis is no
   *   error, because it may become available later
   */
  async onModuleInit(): Promise<void> {
    const { keyPrefix, readiness } = this.options;
    const link = new RedisLink(this.redis, readiness.requestRestart);
    await checkRedisAccess(this.redis, keyPrefix);
    await this.checkSchema().catch((error: unknown) => {
      if (isBroomwagonError(error, 'SCHEMA_UNSUPPORTED')) throw error;
    });
    readiness.addReadiness('redis', async () => {
      const problem = link.problem();
      if (problem !== undefined) throw new Error(problem);
      await Promise.all(listPrimaries(this.redis).map((primary) => primary.ping()));
      await this.marks.checkWritable();
    });
    // Once ready, the app stays ready: transitions that free memory, such as the end of a round, come through it too.
    let hadRoom = false;
    readiness.addReadiness('redis-memory', async () => {
      if (hadRoom) return;
      await this.memory.look();
      const refusal = this.memory.refusal();
      if (refusal) throw refusal;
      hadRoom = true;
    });
    this.memory.start();
    this.library.start();
  }

  /** Checks that this replica can use every pool, and that all live replicas can read pools of its schema. */
  private async checkSchema(): Promise<void> {
    await this.marks.write();
    try {
      await this.marks.checkOthers();
      for (const pool of await this.directory.list()) await this.pools.settings(pool);
    } catch (error) {
      await this.marks.remove();
      throw error;
    }
  }

  async onApplicationShutdown(): Promise<void> {
    this.memory.stop();
    this.library.stop();
    await this.marks.remove().catch(() => undefined);
    await this.redis.quit().catch(() => this.redis.disconnect());
  }
}
