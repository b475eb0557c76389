import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { freePort } from './free-port';
import { Credentials } from './provision/credentials';
import { provideServices } from './services';
import { testNatsUrl, testRedisUrl } from './test-pool';

const given = (overrides: Record<string, string> = {}) => ({
  NATS_URL: testNatsUrl(),
  REDIS_URL: testRedisUrl(),
  ...overrides,
});

describe('provideServices', () => {
  it('uses the servers that the variables name, and neither stops nor kills them', async () => {
    const services = await provideServices({ environment: given() });
    expect(services.nats).toMatchObject({ url: testNatsUrl(), source: 'environment', pid: undefined });
    expect(services.redis.description).toMatch(/^Redis at .*, named by REDIS_URL$/);
    await expect(services.redis.kill()).rejects.toMatchObject({ code: 'INTERNAL' });
    await services.stop();
    await (await provideServices({ environment: given() })).stop();
  });

  it('prefers the variables for tests only when asked', async () => {
    const environment = given({ TEST_REDIS_URL: `${testRedisUrl()}/1` });
    expect((await provideServices({ environment })).redis.url).toBe(testRedisUrl());
    expect((await provideServices({ environment, forTests: true })).redis.url).toBe(`${testRedisUrl()}/1`);
  });

  it('starts a server that no variable names', async () => {
    const services = await provideServices({ environment: { NATS_URL: testNatsUrl() } });
    expect(services.nats.source).toBe('environment');
    expect(['path', 'private-copy', 'docker']).toContain(services.redis.source);
    expect(services.redis.url).not.toBe(testRedisUrl());
    await services.stop();
  });

  it('gives each program its own user on servers of our own, and the address alone of others', async () => {
    const credentials = await Credentials.make();
    const environment = { NATS_URL: testNatsUrl() };
    const services = await provideServices({ environment, credentials });
    const { NATS_URL, NATS_USER, REDIS_URL } = services.getSettings('worker');
    expect({ NATS_URL, NATS_USER }).toEqual({ ...environment, NATS_USER: undefined });
    expect(services.getSettings('trainer')).toEqual(environment);
    const redis = new Redis(REDIS_URL!);
    await expect(redis.hset('rollout:payload:{p/j}:x', 'a', 'b')).resolves.toBe(1);
    await expect(redis.flushall()).rejects.toThrow('NOPERM');
    redis.disconnect();
    await services.stop();
  });

  it('names the variable of a server that does not answer', async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    await expect(provideServices({ environment: given({ REDIS_URL: url }) })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(/^REDIS_URL names .* ECONNREFUSED/) as string,
    });
  });

  it('names the variable of an address that is none', async () => {
    for (const [variable, url] of [
      ['NATS_URL', 'http://127.0.0.1:4222'],
      ['REDIS_URL', 'redis://a b'],
    ] as const) {
      await expect(provideServices({ environment: given({ [variable]: url }) })).rejects.toMatchObject({
        code: 'VALIDATION_FAILED',
        field: variable,
      });
    }
  });
});
