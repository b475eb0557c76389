import type { Redis } from 'ioredis';

/** Keys that begin with `prefix`, in pages; one that is there all the time comes at least once. */
export async function* keysBelow(redis: Redis, prefix: string): AsyncGenerator<string[]> {
  const pattern = `${prefix.replaceAll(/[\\*?[\]^]/g, '\\$&')}*`;
  for await (const keys of redis.scanStream({ match: pattern, count: 1_000 }) as AsyncIterable<string[]>) {
    if (keys.length > 0) yield [...new Set(keys)];
  }
}
