import { Inject, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { HealthRegistry } from '@broomwagon/platform';
import {
  connectRedis,
  PoolDirectory,
  PoolStore,
  ROUTING_BOUNDS,
  RoutingStore,
  ScriptRunner,
  ServerStore,
  WeightStore,
} from '@broomwagon/state';
import { LoadBalancerConfig } from './load-balancer.config';

const REDIS = Symbol('redis');
type RedisConnection = ReturnType<typeof connectRedis>;

/** The connection to Redis with the stores of the load-balancer. It closes last, after the transport has drained. */
@Module({
  providers: [
    {
      provide: REDIS,
      inject: [LoadBalancerConfig],
      useFactory: (config: LoadBalancerConfig) => connectRedis({ url: config.redisUrl }),
    },
    {
      provide: ScriptRunner,
      inject: [REDIS, LoadBalancerConfig],
      useFactory: (redis: RedisConnection, config: LoadBalancerConfig) =>
        new ScriptRunner(redis, config.redisKeyPrefix),
    },
    {
      provide: RoutingStore,
      inject: [ScriptRunner, LoadBalancerConfig],
      useFactory: (scripts: ScriptRunner, config: LoadBalancerConfig) =>
        new RoutingStore(scripts, {
          ...ROUTING_BOUNDS,
          mostSessions: config.maxSessions,
          mostWaiters: config.maxWaiters,
        }),
    },
    {
      provide: ServerStore,
      inject: [ScriptRunner, LoadBalancerConfig],
      useFactory: (scripts: ScriptRunner, config: LoadBalancerConfig) =>
        new ServerStore(scripts, { mostSessions: config.maxSessions }),
    },
    {
      provide: PoolStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new PoolStore(scripts),
    },
    {
      provide: WeightStore,
      inject: [ScriptRunner],
      useFactory: (scripts: ScriptRunner) => new WeightStore(scripts),
    },
    {
      provide: PoolDirectory,
      inject: [REDIS, LoadBalancerConfig],
      useFactory: (redis: RedisConnection, config: LoadBalancerConfig) =>
        new PoolDirectory(redis, config.redisKeyPrefix),
    },
  ],
  exports: [RoutingStore, ServerStore, PoolStore, PoolDirectory, WeightStore],
})
export class RedisModule implements OnModuleInit, OnApplicationShutdown {
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
