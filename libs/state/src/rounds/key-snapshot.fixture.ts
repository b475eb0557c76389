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
      names.map(async (name) => [name, await redis.dumpBuffer(name), Math.max(0, await redis.pttl(name))] as const),
    );
    // A key that has expired meanwhile has no dump.
    const found = keys.flatMap(([name, dump, ttlMs]) => (dump === null ? [] : [[name, dump, ttlMs] as const]));
    return new KeySnapshot(redis, prefix, found);
  }

  async restore(): Promise<void> {
    const names = await this.redis.keys(`${escaped(this.prefix)}*`);
    // At once: a service that writes in between would find half of the keys.
    const restoring = this.redis.multi();
    if (names.length > 0) restoring.del(...names);
    for (const [name, dump, ttlMs] of this.keys) restoring.restore(name, ttlMs, dump, 'REPLACE');
    for (const [error] of (await restoring.exec())!) if (error !== null) throw error;
  }
}

function escaped(prefix: string): string {
  return prefix.replace(/[\\*?[\]]/g, '\\$&');
}
