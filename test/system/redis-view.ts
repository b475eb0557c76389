import { connectRedis, FunctionRunner, PoolAudit, type RedisClient } from '@broomwagon/state';
import { keysBelow } from '../../libs/state/src/audit/key-scan';

/** Fields that services write without calls: clocks, load reports, the pause of expiries after a machine stalled. */
const UPKEEP_FIELDS = new Set(
  (
    'clockMs reaperTickMs arrivalSequence holdUntilMs holdReason ' +
    'loadAtMs loadPreemptions loadRunning loadTokens loadWaiting kvUse'
  ).split(' '),
);

/** Lists of the latest decisions: bounded by themselves, and filled only after some hundred of them. */
const BOUNDED_RING = /:decisions(:full)?$/;

/** Read-only view of the keys of one system in Redis. */
export class RedisView {
  private readonly redis: RedisClient;

  constructor(
    url: string,
    private readonly keyPrefix: string,
    private readonly pool: string,
  ) {
    this.redis = connectRedis({ url });
  }

  /** One hash of the pool in Redis, by its name below the pool. */
  async hash(name: string): Promise<Record<string, string>> {
    return this.redis.hgetall(`${this.keyPrefix}:{${this.pool}}:${name}`);
  }

  async exists(name: string): Promise<boolean> {
    return (await this.redis.exists(`${this.keyPrefix}:{${this.pool}}:${name}`)) === 1;
  }

  /** Bytes of each key of the system in Redis, without capped streams and keys that expire. */
  async keySizes(): Promise<Map<string, number>> {
    const sizes = new Map<string, number>();
    for (const key of await this.keys()) {
      if (BOUNDED_RING.test(key) || (await this.redis.type(key)) === 'stream' || (await this.redis.pttl(key)) > 0)
        continue;
      sizes.set(key, (await this.redis.memory('USAGE', key, 'SAMPLES', '0')) ?? 0);
    }
    return sizes;
  }

  /** The contents of all our keys but for clocks and the count of arrivals, for comparison. */
  async dump(): Promise<Record<string, string>> {
    const keys = await this.keys();
    return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await this.readContent(key)])));
  }

  /** Requests of the gateway of which some tokens are saved. */
  async savedPartials(): Promise<number> {
    return (await this.keys()).filter((key) => /:partial:[^:]+$/.test(key)).length;
  }

  private async readContent(key: string): Promise<string> {
    switch (await this.redis.type(key)) {
      case 'string':
        return (await this.redis.get(key)) ?? '';
      case 'list':
        return (await this.redis.lrange(key, 0, -1)).join();
      case 'set':
        return (await this.redis.smembers(key)).sort().join();
      case 'zset':
        return (await this.redis.zrange(key, '0', '-1')).join();
      case 'stream':
        return String(await this.redis.xlen(key));
      default: {
        const fields = Object.entries(await this.redis.hgetall(key));
        return fields
          .filter(([field]) => !UPKEEP_FIELDS.has(field))
          .map(([field, value]) => `${field}=${value}`)
          .sort()
          .join();
      }
    }
  }

  /** Findings of the audit of the pool. */
  async findings(): Promise<object[]> {
    return (await new PoolAudit(this.redis, new FunctionRunner(this.redis, this.keyPrefix)).run(this.pool)).findings;
  }

  private async keys(): Promise<string[]> {
    const found: string[] = [];
    for await (const keys of keysBelow(this.redis, `${this.keyPrefix}:`)) found.push(...keys);
    return [...new Set(found)].sort();
  }

  close(): void {
    this.redis.disconnect();
  }
}
