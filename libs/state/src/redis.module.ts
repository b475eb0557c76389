import {
  Inject,
  Module,
  type DynamicModule,
  type FactoryProvider,
  type OnApplicationShutdown,
  type OnModuleInit,
  type Type,
} from '@nestjs/common';
import { connectRedis } from './redis';
import { PoolDirectory } from './routing/pool-directory';
import { ScriptRunner } from './scripts/script-runner';

/** What the configuration of a service says of Redis. */
export interface RedisSettings {
  redisUrl: string;
  redisKeyPrefix: string;
}

/** Where a service collects what it cannot work without. */
export interface Readiness {
  addReadiness(name: string, check: () => Promise<unknown>): void;
}

export type RedisConnection = ReturnType<typeof connectRedis>;
/** Inject it for what no store does. */
export const REDIS_CONNECTION = Symbol('redis connection');
const READINESS = Symbol('readiness');

/**
 * The connection of an app to Redis (ScriptRunner, PoolDirectory, REDIS_CONNECTION): part of its readiness, closed last,
 * after the transport has drained.
 */
@Module({})
export class RedisModule implements OnModuleInit, OnApplicationShutdown {
  constructor(
    @Inject(REDIS_CONNECTION) private readonly redis: RedisConnection,
    @Inject(READINESS) private readonly readiness: Readiness,
  ) {}

  /** @param settings, readiness: the classes under which the app provides them; this library knows no platform */
  static forService(settings: Type<RedisSettings>, readiness: Type<Readiness>): DynamicModule {
    return {
      module: RedisModule,
      providers: [
        { provide: READINESS, useExisting: readiness },
        {
          provide: REDIS_CONNECTION,
          inject: [settings],
          useFactory: ({ redisUrl }: RedisSettings) => connectRedis({ url: redisUrl }),
        },
        {
          provide: ScriptRunner,
          inject: [REDIS_CONNECTION, settings],
          useFactory: (redis: RedisConnection, { redisKeyPrefix }: RedisSettings) =>
            new ScriptRunner(redis, redisKeyPrefix),
        },
        {
          provide: PoolDirectory,
          inject: [REDIS_CONNECTION, settings],
          useFactory: (redis: RedisConnection, { redisKeyPrefix }: RedisSettings) =>
            new PoolDirectory(redis, redisKeyPrefix),
        },
      ],
      exports: [REDIS_CONNECTION, ScriptRunner, PoolDirectory],
    };
  }

  onModuleInit(): void {
    this.readiness.addReadiness('redis', () => this.redis.ping());
  }

  async onApplicationShutdown(): Promise<void> {
    await this.redis.quit().catch(() => this.redis.disconnect());
  }
}

/** Provides stores that need nothing but the scripts. */
export function storesOfScripts(...stores: (new (scripts: ScriptRunner) => object)[]): FactoryProvider[] {
  return stores.map((Store) => ({
    provide: Store,
    inject: [ScriptRunner],
    useFactory: (scripts: ScriptRunner) => new Store(scripts),
  }));
}
