import { BroomwagonError, POOL_PATTERN, type PoolName } from '@broomwagon/contracts';
import type { Redis } from 'ioredis';

/**
 * The pools that have state in Redis: what the periodic tasks of every replica go through. A pool enters it with its
 * first server or worker and stays; when Redis has lost it, it enters it again.
 */
export class PoolDirectory {
  private readonly known = new Set<PoolName>();

  constructor(
    private readonly redis: Redis,
    /** First part of every key, as for the scripts. */
    private readonly keyPrefix: string,
  ) {}

  /** Enters the pool; free of cost when this process has done so before. @throws BroomwagonError UNAVAILABLE */
  async add(pool: PoolName): Promise<void> {
    if (this.known.has(pool)) return;
    if (!POOL_PATTERN.test(pool)) {
      throw new BroomwagonError('VALIDATION_FAILED', `The pool name must match ${POOL_PATTERN.source}`, {
        field: 'pool',
      });
    }
    await this.asked(this.redis.sadd(this.key, pool));
    this.known.add(pool);
  }

  /** All pools, sorted. @throws BroomwagonError UNAVAILABLE */
  async list(): Promise<PoolName[]> {
    const pools = await this.asked(this.redis.smembers(this.key));
    for (const pool of this.known) if (!pools.includes(pool)) this.known.delete(pool);
    return pools.sort();
  }

  private get key(): string {
    return `${this.keyPrefix}:pools`;
  }

  private async asked<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (cause) {
      throw new BroomwagonError('UNAVAILABLE', `Redis does not answer: ${(cause as Error).message}`, { cause });
    }
  }
}
