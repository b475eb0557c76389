import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkRedisAccess, connectRedis, FunctionRunner, WorkerStore } from '@broomwagon/state';
import { RedisSentinels, TEST_CERTIFICATE, TEST_KEY, testPool } from '@broomwagon/testing';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';

const { pool: prefix } = testPool();
const DEADLINE_MS = 30_000;

/** Checks that a client reaches the primary, and after a failover its successor. */
async function expectToFollow(
  sentinels: RedisSentinels,
  options: Omit<Parameters<typeof connectRedis>[0], 'url'> = {},
): Promise<void> {
  const redis = connectRedis({ ...options, url: sentinels.url });
  try {
    await checkRedisAccess(redis, prefix);
    const workers = new WorkerStore(new FunctionRunner(redis, prefix));
    const register = (workerId: string) =>
      workers.register('p', { workerId, registrationId: 'r', ttlMs: 600_000 }).catch((error: unknown) => error);
    expect(await register('before')).toMatchObject({ workerEpoch: expect.any(String) as string });
    const failover = sentinels.failOver();
    await expect.poll(() => register('during')).toMatchObject({ code: 'UNAVAILABLE', retryable: true });
    await failover;
    await expect.poll(() => register('after')).toMatchObject({ workerEpoch: expect.any(String) as string });
  } finally {
    redis.disconnect();
  }
}

describe.skipIf(!inject('redisHasTls'))('Sentinels with TLS and passwords', () => {
  const ca = TEST_CERTIFICATE;
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-sentinels-'));
  const tls = { certificate: join(folder, 'server.crt'), key: join(folder, 'server.key') };
  const access = { password: 'of-the-servers', sentinelPassword: 'of-the-sentinels', tls };
  const { sentinelPassword } = access;
  beforeAll(() => {
    writeFileSync(tls.certificate, TEST_CERTIFICATE);
    writeFileSync(tls.key, TEST_KEY);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('lead to the primary and to the next one, and only with the passwords', async () => {
    const sentinels = await RedisSentinels.start(access);
    try {
      const stranger = connectRedis({ url: sentinels.url, tls: { ca }, sentinelPassword: 'wrong' });
      await expect(checkRedisAccess(stranger, prefix)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
      stranger.disconnect();
      await expectToFollow(sentinels, { tls: { ca }, sentinelPassword });
    } finally {
      await sentinels.stop();
    }
  });

  it('move clients from an old primary that still acts as a primary', async () => {
    // Without these settings the Sentinels would make the old primary a replica soon, and close its connections.
    const cannotBeReplica = ['rename-command REPLICAOF ""', 'rename-command SLAVEOF ""'];
    const sentinels = await RedisSentinels.start(access, cannotBeReplica);
    const redis = connectRedis({ url: sentinels.url, tls: { ca }, sentinelPassword });
    let old: Redis | undefined;
    const readPort = async () => ((await redis.config('GET', 'port').catch(() => [])) as string[])[1] ?? '';
    let port = '';
    try {
      await expect.poll(async () => (port = await readPort()), { timeout: DEADLINE_MS }).not.toBe('');
      await sentinels.failOverHung();
      await expect.poll(readPort, { timeout: DEADLINE_MS }).not.toMatch(new RegExp(`^(${port})?$`));
      old = new Redis(`redis://:${access.password}@127.0.0.1:${port}`);
      expect((await old.role())[0]).toBe('master');
    } finally {
      old?.disconnect();
      redis.disconnect();
      await sentinels.stop();
    }
  });
});

describe('Sentinels', () => {
  let sentinels: RedisSentinels;
  beforeAll(async () => {
    sentinels = await RedisSentinels.start();
  });
  afterAll(() => sentinels.stop());

  it('lead to the primary, and to its successor', () => expectToFollow(sentinels));

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
