import {
  Inject,
  Module,
  type DynamicModule,
  type FactoryProvider,
  type OnApplicationShutdown,
  type OnModuleInit,
  type Type,
} from '@nestjs/common';
import type { TlsSettings } from '@broomwagon/contracts';
import { connectRedis } from './redis';
import { checkRedisAccess } from './redis-access';
import { checkRedisVersion, RedisMemory, RedisTooOldError } from './redis-memory';
import { PoolDirectory } from './routing/pool-directory';
import { FunctionRunner } from './library/function-runner';
import { LibraryUpkeep } from './library/library-upkeep';

/** What the configuration of a service says of Redis. */
export interface RedisSettings {
  redisUrl: string;
  redisKeyPrefix: string;
  redisTls(): TlsSettings;
}

/** Where a service collects what it cannot work without. */
export interface Readiness {
  addReadiness(name: string, check: () => Promise<unknown>): void;
}

/** Where a service shows numbers; what the platform's metrics are. */
export interface Gauges {
  gauge(name: string, help: string): { set(value: number): void };
}

export type RedisConnection = ReturnType<typeof connectRedis>;
/** Inject it for what no store does. */
export const REDIS_CONNECTION = Symbol('redis connection');
const SETTINGS = Symbol('redis settings');
const READINESS = Symbol('readiness');
const GAUGES = Symbol('gauges');

/**
 * The connection of an app to Redis (FunctionRunner, PoolDirectory, RedisMemory, REDIS_CONNECTION): part of its readiness,
 * closed last, after the transport has drained.
 */
@Module({})
export class RedisModule implements OnModuleInit, OnApplicationShutdown {
  constructor(
    @Inject(REDIS_CONNECTION) private readonly redis: RedisConnection,
    @Inject(SETTINGS) private readonly settings: RedisSettings,
    @Inject(READINESS) private readonly readiness: Readiness,
    private readonly memory: RedisMemory,
    private readonly library: LibraryUpkeep,
  ) {}

  /** @param settings, readiness, gauges: the classes under which the app provides them; this library knows no platform */
  static forService(settings: Type<RedisSettings>, readiness: Type<Readiness>, gauges: Type<Gauges>): DynamicModule {
    return {
      module: RedisModule,
      providers: [
        { provide: SETTINGS, useExisting: settings },
        { provide: READINESS, useExisting: readiness },
        { provide: GAUGES, useExisting: gauges },
        {
          provide: RedisMemory,
          inject: [REDIS_CONNECTION, GAUGES],
          useFactory: (redis: RedisConnection, metrics: Gauges) => {
            const ratio = metrics.gauge(
              'redis_memory_ratio',
              'Memory of Redis / its maxmemory; 0.9: no new work is taken',
            );
            return new RedisMemory(redis, 'Redis', (use) =>
              ratio.set(use.maxBytes > 0 ? use.usedBytes / use.maxBytes : 0),
            );
          },
        },
        {
          provide: REDIS_CONNECTION,
          inject: [settings],
          useFactory: (config: RedisSettings) => connectRedis({ url: config.redisUrl, tls: config.redisTls() }),
        },
        {
          provide: LibraryUpkeep,
          inject: [REDIS_CONNECTION],
          useFactory: (redis: RedisConnection) => new LibraryUpkeep(redis),
        },
        {
          provide: FunctionRunner,
          inject: [REDIS_CONNECTION, settings, RedisMemory],
          useFactory: (redis: RedisConnection, { redisKeyPrefix }: RedisSettings, memory: RedisMemory) =>
            new FunctionRunner(redis, redisKeyPrefix, memory),
        },
        {
          provide: PoolDirectory,
          inject: [REDIS_CONNECTION, settings],
          useFactory: (redis: RedisConnection, { redisKeyPrefix }: RedisSettings) =>
            new PoolDirectory(redis, redisKeyPrefix),
        },
      ],
      exports: [REDIS_CONNECTION, FunctionRunner, PoolDirectory, RedisMemory],
    };
  }

  /** @throws BroomwagonError UNAVAILABLE when Redis refuses us, RedisTooOldError; a Redis that is unavailable may come */
  async onModuleInit(): Promise<void> {
    await checkRedisAccess(this.redis, this.settings.redisKeyPrefix);
    this.readiness.addReadiness('redis', () => this.redis.ping());
    this.readiness.addReadiness('redis-memory', async () => {
      const refusal = this.memory.refusal();
      if (refusal) throw refusal;
    });
    this.memory.start();
    this.library.start();
    await checkRedisVersion(this.redis).catch((error: unknown) => {
      if (error instanceof RedisTooOldError) throw error;
    });
  }

  async onApplicationShutdown(): Promise<void> {
    this.memory.stop();
    this.library.stop();
    await this.redis.quit().catch(() => this.redis.disconnect());
  }
}

/** Provides stores that need nothing but the transitions. */
export function storesOfTransitions(...stores: (new (scripts: FunctionRunner) => object)[]): FactoryProvider[] {
  return stores.map((Store) => ({
    provide: Store,
    inject: [FunctionRunner],
    useFactory: (scripts: FunctionRunner) => new Store(scripts),
  }));
}
