import { checkRedisAccess, connectRedis, FunctionRunner, WorkerStore } from '@broomwagon/state';
import { RedisSentinels, testPool } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

describe('Sentinels', () => {
  const { pool: prefix } = testPool();
  let sentinels: RedisSentinels;
  beforeAll(async () => {
    sentinels = await RedisSentinels.start();
  });
  afterAll(() => sentinels.stop());

  it('lead to the primary, and to its successor', async () => {
    const redis = connectRedis({ url: sentinels.url });
    await checkRedisAccess(redis, prefix);
    const workers = new WorkerStore(new FunctionRunner(redis, prefix));
    const register = (workerId: string) =>
      workers.register('p', { workerId, registrationId: 'r', ttlMs: 600_000 }).catch((error: unknown) => error);
    expect(await register('before')).toMatchObject({ workerEpoch: expect.any(String) as string });
    const failover = sentinels.failOver();
    await expect.poll(() => register('during')).toMatchObject({ code: 'UNAVAILABLE', retryable: true });
    await failover;
    await expect.poll(() => register('after')).toMatchObject({ workerEpoch: expect.any(String) as string });
    redis.disconnect();
  });

  it.each([
    ['another name of the primary', () => sentinels.url.replace(/[^/]*$/, 'other'), /no primary of this name/],
    [
      'one of them as a server',
      () => sentinels.url.replace(/.*@?:(\d+)\/.*/, 'redis://127.0.0.1:$1'),
      /redis\+sentinel/,
    ],
    [
      'one of them as a Cluster',
      () => sentinels.url.replace(/.*@?:(\d+)\/.*/, 'redis+cluster://127.0.0.1:$1'),
      /Sentinel/,
    ],
  ])('refuse an address with %s, which says what to write', async (_, url, says) => {
    const redis = connectRedis({ url: url() });
    await expect(checkRedisAccess(redis, prefix)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(says) as string,
    });
    redis.disconnect();
  });
});
