import { randomBytes } from 'node:crypto';
import { BroomwagonError } from '@broomwagon/contracts';
import { connectRedis } from '@broomwagon/state';
import { keysBelow } from '../../state/src/audit/key-scan';
import { SERVER_KINDS, type ServerKind } from './provision/server-kind';

/** Names that no other test uses, so that all can share one NATS and one Redis. */
export interface TestPool {
  /** `test-<random>`, valid as a subject token and a pool name. */
  readonly pool: string;
  /** `test-<random>:`, for Redis keys that do not carry the pool. */
  readonly keyPrefix: string;
}

export function testPool(): TestPool {
  const pool = `test-${randomBytes(5).toString('hex')}`;
  return { pool, keyPrefix: `${pool}:` };
}

/** The NATS server that all tests of a run share. @throws BroomwagonError UNAVAILABLE outside of `vitest run`. */
export function testNatsUrl(): string {
  return sharedUrl('nats');
}

/** The Redis server that all tests of a run share. @throws BroomwagonError UNAVAILABLE outside of `vitest run`. */
export function testRedisUrl(): string {
  return sharedUrl('redis');
}

/**
 * Database 1 of the same server, for tests that list all keys after each step: they do not read the keys of other
 * tests. A Cluster has one database only, which is returned.
 */
export function secondDatabaseUrl(): string {
  const url = testRedisUrl();
  return url.startsWith('redis://') ? `${url}/1` : url;
}

/**
 * Unlinks all keys that begin with `prefix` and returns how many there were. Pages of 1,000, so it never blocks the
 * server that other tests share.
 *
 * @throws BroomwagonError VALIDATION_FAILED for an empty prefix (that would be everything).
 */
export async function flushPrefix(redisUrl: string, prefix: string): Promise<number> {
  if (prefix === '') throw new BroomwagonError('VALIDATION_FAILED', 'An empty prefix would unlink every key');
  const redis = connectRedis({ url: redisUrl, commandTimeoutMs: 30_000 });
  let unlinked = 0;
  try {
    for await (const keys of keysBelow(redis, prefix)) {
      // One by one: in a Cluster they are of many slots.
      for (const removed of await Promise.all(keys.map((key) => redis.unlink(key)))) unlinked += removed;
    }
  } finally {
    redis.disconnect();
  }
  return unlinked;
}

function sharedUrl(kind: ServerKind): string {
  const { testUrlVariable } = SERVER_KINDS[kind];
  const url = process.env[testUrlVariable];
  if (url) return url;
  throw new BroomwagonError('UNAVAILABLE', `${testUrlVariable} is not set: run tests through vitest (globalSetup)`);
}
