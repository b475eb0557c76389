import { Test } from '@nestjs/testing';
import { Metrics } from '@broomwagon/platform';
import { startRedis, testPool, testRedisUrl, waitUntil } from '@broomwagon/testing';
import { Redis } from 'ioredis';
import { expect, it, vi } from 'vitest';
import { ClaimBounds } from './requests/request.store';
import { PoolStore } from './pools';
import { RedisMemory } from './redis-memory';
import { StateModule } from './state.module';

/** An app with the stores, and the checks of its readiness for Redis. */
async function openApp(url: string) {
  const checks = new Map<string, () => Promise<unknown>>();
  const requestRestart = vi.fn<(reason: Error) => void>();
  const app = await Test.createTestingModule({
    imports: [
      StateModule.forRootAsync({
        useFactory: () => ({
          url,
          keyPrefix: testPool().pool,
          claims: { maxWaiters: 3 },
          readiness: { addReadiness: (name, check) => void checks.set(name, check), requestRestart },
          metrics: new Metrics('spec'),
        }),
      }),
    ],
  }).compile();
  await app.init();
  return { app, isReady: checks.get('redis')!, hasRoom: checks.get('redis-memory')!, requestRestart };
}

it('gives an app its stores, is part of its readiness, and closes with it', async () => {
  const { app, isReady } = await openApp(testRedisUrl());
  const connection = app.get(Redis);
  expect(await app.get(PoolStore).settings('default')).toMatchObject({ version: 0 });
  expect(app.get(ClaimBounds)).toEqual({ keptMs: 60_000, maxWaiters: 3 });
  await isReady();
  await app.close();
  await waitUntil(() => connection.status === 'end', { what: 'the end of the connection', timeoutMs: 5_000 });
  await expect(isReady()).rejects.toThrow();
});

it('closes also when Redis is unavailable', async () => {
  const { app, isReady } = await openApp('redis://127.0.0.1:1');
  await expect(isReady()).rejects.toThrow();
  await app.close();
});

it('requests a restart once Redis has refused the password of the app for two minutes', async () => {
  const server = await startRedis();
  const admin = new Redis(server.url);
  await admin.acl('SETUSER', 'service', 'on', '>before', '~*', '&*', '+@all');
  const { app, isReady, requestRestart } = await openApp(server.url.replace('redis://', 'redis://service:before@'));
  await admin.acl('SETUSER', 'service', 'resetpass', '>after');
  await admin.client('KILL', 'USER', 'service');
  await expect.poll(() => isReady().catch(String)).toMatch(/refuses the user and password of REDIS_URL/);
  expect(requestRestart).not.toHaveBeenCalled();
  const nowMs = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs() + 120_000);
  await expect.poll(() => requestRestart.mock.calls[0]?.[0].message).toMatch(/user and password of REDIS_URL/);
  clock.mockRestore();
  await app.close();
  admin.disconnect();
  await server.stop();
});

it('does not become ready while Redis is full, and stays ready when it fills up: others need it to free memory', async () => {
  const server = await startRedis();
  const admin = new Redis(server.url);
  const limit = async (share: number) => {
    const { usedBytes } = await new RedisMemory(admin).look();
    await admin.config('SET', 'maxmemory', Math.floor(usedBytes / share));
  };
  // The value is so large that connections do not change the share.
  await admin.setrange('filler', 8_000_000, 'x');
  await limit(0.95);
  const first = await openApp(server.url);
  await expect(first.hasRoom()).rejects.toMatchObject({ code: 'STORE_FULL' });
  await limit(0.5);
  await first.hasRoom();
  await limit(0.95);
  const second = await openApp(server.url);
  await expect(second.hasRoom()).rejects.toMatchObject({ code: 'STORE_FULL' });
  await first.app.get(RedisMemory).look();
  expect(first.app.get(RedisMemory).refusal()).toMatchObject({ code: 'STORE_FULL' });
  await first.hasRoom();
  await Promise.all([first.app.close(), second.app.close()]);
  admin.disconnect();
  await server.stop();
});
