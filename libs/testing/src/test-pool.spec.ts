import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from 'nats';
import { flushPrefix, testNatsUrl, testPool, testRedisUrl } from './test-pool';

describe('services shared by all tests of a run', () => {
  let redis: Redis;
  beforeAll(() => {
    redis = new Redis(testRedisUrl());
  });
  afterAll(() => redis.disconnect());

  it('is a NATS server with JetStream and a Redis server that answer', async () => {
    const nats = await connect({ servers: testNatsUrl() });
    expect((await (await nats.jetstreamManager()).getAccountInfo()).streams).toBeGreaterThanOrEqual(0);
    await nats.close();
    expect(await redis.ping()).toBe('PONG');
  });

  it('gives every test names of its own', () => {
    const names = Array.from({ length: 100 }, () => testPool().pool);
    expect(new Set(names).size).toBe(100);
    expect(names.every((name) => /^test-[0-9a-f]+$/.test(name))).toBe(true);
  });

  it('flushes the keys of one prefix, more than a page of them, and no others', async () => {
    const mine = testPool().keyPrefix;
    const others = testPool().keyPrefix;
    const pairs = Array.from({ length: 2_500 }, (_, index) => [`${mine}${index}`, 'x']).flat();
    await redis.mset(...pairs, `${others}kept`, 'x');
    expect(await flushPrefix(testRedisUrl(), mine)).toBe(2_500);
    expect(await redis.exists(`${mine}7`, `${others}kept`)).toBe(1);
    await flushPrefix(testRedisUrl(), others);
  });

  it('takes a prefix literally, not as a pattern, and never an empty one', async () => {
    const { keyPrefix } = testPool();
    await redis.mset(`${keyPrefix}a*[b]`, 'x', `${keyPrefix}aXb`, 'x');
    expect(await flushPrefix(testRedisUrl(), `${keyPrefix}a*[b]`)).toBe(1);
    expect(await redis.exists(`${keyPrefix}aXb`)).toBe(1);
    await flushPrefix(testRedisUrl(), keyPrefix);
    await expect(flushPrefix(testRedisUrl(), '')).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
  });
});
