import { Inject, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { HealthRegistry } from '@broomwagon/platform';
import {
  AbortStore,
  CheckpointStore,
  connectRedis,
  FactOutbox,
  JobStore,
  LedgerStore,
  LongtailStore,
  MoveStore,
  PoolDirectory,
  PromptMemoryStore,
  RequestStore,
  RoundStore,
  RoutingStore,
  ScriptRunner,
  WeightStore,
} from '@broomwagon/state';
import { CoordinatorConfig } from './coordinator.config';

const REDIS = Symbol('redis');
type RedisConnection = ReturnType<typeof connectRedis>;

/** The connection to Redis with the stores of the coordinator. It closes last, after the transport has drained. */
@Module({
  providers: [
    {
      provide: REDIS,
      inject: [CoordinatorConfig],
      useFactory: (config: CoordinatorConfig) => connectRedis({ url: config.redisUrl }),
    },
    {
      provide: ScriptRunner,
      inject: [REDIS, CoordinatorConfig],
      useFactory: (redis: RedisConnection, config: CoordinatorConfig) => new ScriptRunner(redis, config.redisKeyPrefix),
    },
    {
      provide: RoundStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new RoundStore(scripts),
    },
    {
      provide: RequestStore,
      inject: [ScriptRunner, CoordinatorConfig],
      useFactory: (scripts: ScriptRunner, config: CoordinatorConfig) =>
        new RequestStore(scripts, { answerKeptMs: config.claimAnswerKeptMs, maxWaiters: config.maxClaimWaiters }),
    },
    {
      provide: JobStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new JobStore(scripts),
    },
    {
      provide: LongtailStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new LongtailStore(scripts),
    },
    {
      provide: LedgerStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new LedgerStore(scripts),
    },
    {
      provide: PromptMemoryStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new PromptMemoryStore(scripts),
    },
    {
      provide: CheckpointStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new CheckpointStore(scripts),
    },
    {
      provide: AbortStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new AbortStore(scripts),
    },
    {
      provide: WeightStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new WeightStore(scripts),
    },
    {
      provide: MoveStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new MoveStore(scripts),
    },
    {
      provide: RoutingStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new RoutingStore(scripts),
    },
    {
      provide: PoolDirectory,
      inject: [REDIS, CoordinatorConfig],
      useFactory: (redis: RedisConnection, config: CoordinatorConfig) =>
        new PoolDirectory(redis, config.redisKeyPrefix),
    },
    {
      provide: FactOutbox,
      inject: [REDIS, CoordinatorConfig],
      useFactory: (redis: RedisConnection, config: CoordinatorConfig) =>
        new FactOutbox(redis, config.redisKeyPrefix, `relay-${process.pid}-${Date.now()}`),
    },
  ],
  exports: [
    AbortStore,
    CheckpointStore,
    JobStore,
    LedgerStore,
    LongtailStore,
    MoveStore,
    PromptMemoryStore,
    RoundStore,
    RoutingStore,
    RequestStore,
    PoolDirectory,
    FactOutbox,
    WeightStore,
  ],
})
export class StateModule implements OnModuleInit, OnApplicationShutdown {
  constructor(
    @Inject(REDIS) private readonly redis: RedisConnection,
    private readonly health: HealthRegistry,
  ) {}

  onModuleInit(): void {
    // Without a listener ioredis prints each error of a connection it is going to open again anyway.
    this.redis.on('error', () => undefined);
    this.health.addReadiness('redis', () => this.redis.ping());
  }

  async onApplicationShutdown(): Promise<void> {
    await this.redis.quit().catch(() => this.redis.disconnect());
  }
}
