import { Test } from '@nestjs/testing';
import { testPool, testRedisUrl, waitUntil } from '@broomwagon/testing';
import { expect, it } from 'vitest';
import { REDIS_CONNECTION, RedisModule, storesOfTransitions, type RedisConnection } from './redis.module';
import { PoolStore } from './routing/pool.store';

class Settings {
  redisUrl = testRedisUrl();
  redisKeyPrefix = testPool().pool;
  redisTls = () => ({});
}
class Checks {
  readonly added = new Map<string, () => Promise<unknown>>();
  addReadiness(name: string, check: () => Promise<unknown>): void {
    this.added.set(name, check);
  }
}
class Numbers {
  gauge() {
    return { set: () => undefined };
  }
}

/** An app whose platform provides the settings and collects the checks. */
async function openApp(settings: typeof Settings) {
  class Platform {}
  const provided = [{ provide: Settings, useClass: settings }, Checks, Numbers];
  const app = await Test.createTestingModule({
    imports: [
      { module: Platform, global: true, providers: provided, exports: [Settings, Checks, Numbers] },
      RedisModule.forService(Settings, Checks, Numbers),
    ],
    providers: storesOfTransitions(PoolStore),
  }).compile();
  await app.init();
  const connection = app.get<RedisConnection>(REDIS_CONNECTION, { strict: false });
  return { app, connection, isReady: app.get(Checks, { strict: false }).added.get('redis')! };
}

it('gives an app its stores, is part of its readiness, and closes with it', async () => {
  const { app, connection, isReady } = await openApp(Settings);
  expect(await app.get(PoolStore).settings('default')).toMatchObject({ version: 0 });
  expect(await isReady()).toBe('PONG');
  await app.close();
  await waitUntil(() => connection.status === 'end', { what: 'the end of the connection', timeoutMs: 5_000 });
  await expect(isReady()).rejects.toThrow();
});

it('closes also when Redis is away', async () => {
  class Nowhere extends Settings {
    override redisUrl = 'redis://127.0.0.1:1';
  }
  const { app, isReady } = await openApp(Nowhere);
  await expect(isReady()).rejects.toThrow();
  await app.close();
});
