import type { RedisClient } from '../redis-cluster';

/**
 * Copy of all keys with a prefix. Restoring it sets the same Redis process back to an earlier state.
 */
export class KeySnapshot {
  private constructor(
    private readonly redis: RedisClient,
    private readonly prefix: string,
    private readonly keys: readonly (readonly [name: string, dump: Buffer, ttlMs: number])[],
  ) {}

  static async of(redis: RedisClient, prefix: string): Promise<KeySnapshot> {
    const names = await redis.keys(`${escaped(prefix)}*`);
    const keys = await Promise.all(
      names.map(async (name) => [name, (await redis.dumpBuffer(name))!, Math.max(0, await redis.pttl(name))] as const),
    );
    return new KeySnapshot(redis, prefix, keys);
  }

  async restore(): Promise<void> {
    const names = await this.redis.keys(`${escaped(this.prefix)}*`);
    if (names.length > 0) await this.redis.del(...names);
    await Promise.all(this.keys.map(([name, dump, ttlMs]) => this.redis.restore(name, ttlMs, dump)));
  }
}

function escaped(prefix: string): string {
  return prefix.replace(/[\\*?[\]]/g, '\\$&');
}
