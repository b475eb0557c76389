import { primariesWith, type RedisClient } from '../redis-cluster';

/** Keys of one pool that begin with `prefix`, in pages. A key that exists all the time is in at least one page. */
export async function* keysBelow(redis: RedisClient, prefix: string): AsyncGenerator<string[]> {
  const match = `${prefix.replaceAll(/[\\*?[\]^]/g, '\\$&')}*`;
  for await (const primary of primariesWith(redis, prefix)) {
    for await (const keys of primary.scanStream({ match, count: 1_000 }) as AsyncIterable<string[]>) {
      if (keys.length > 0) yield [...new Set(keys)];
    }
  }
}
