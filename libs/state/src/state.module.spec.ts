import { Test } from '@nestjs/testing';
import { Metrics } from '@broomwagon/platform';
import { testPool, testRedisUrl, waitUntil } from '@broomwagon/testing';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { ClaimBounds } from './requests/request.store';
import { PoolStore } from './pools';
import { StateModule } from './state.module';

/** An app with the stores, and the check of its readiness for Redis. */
async function openApp(url: string) {
  const checks = new Map<string, () => Promise<unknown>>();
  const app = await Test.createTestingModule({
    imports: [
      StateModule.forRootAsync({
        useFactory: () => ({
          url,
          keyPrefix: testPool().pool,
          claims: { maxWaiters: 3 },
          readiness: { addReadiness: (name, check) => void checks.set(name, check) },
          metrics: new Metrics('spec'),
        }),
      }),
    ],
  }).compile();
  await app.init();
  return { app, isReady: checks.get('redis')! };
}

it('gives an app its stores, is part of its readiness, and closes with it', async () => {
  const { app, isReady } = await openApp(testRedisUrl());
  const connection = app.get(Redis);
  expect(await app.get(PoolStore).settings('default')).toMatchObject({ version: 0 });
  expect(app.get(ClaimBounds)).toEqual({ keptMs: 60_000, maxWaiters: 3 });
  expect(await isReady()).toContain('PONG');
  await app.close();
  await waitUntil(() => connection.status === 'end', { what: 'the end of the connection', timeoutMs: 5_000 });
  await expect(isReady()).rejects.toThrow();
});

it('closes also when Redis is unavailable', async () => {
  const { app, isReady } = await openApp('redis://127.0.0.1:1');
  await expect(isReady()).rejects.toThrow();
  await app.close();
});
