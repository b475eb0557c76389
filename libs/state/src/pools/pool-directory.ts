import { randomUUID } from 'node:crypto';
import { BroomwagonError, POOL_PATTERN, type PoolName, sortTexts } from '@broomwagon/contracts';
import type { RedisClient } from '../redis-cluster';
import { awaitAnswer } from '../redis';
import { transition, FunctionRunner } from '../library/function-runner';

export interface PoolActivity {
  /** Periodic tasks have work in the pool. */
  awake: boolean;
  /** Reasons against deleting the pool, for example `live workers`. */
  inUse: string[];
  servers: number;
  jobs: number;
  /** Time of the last transition, milliseconds since 1970. */
  lastMs: number;
}
const activity = transition<object, PoolActivity>('pools/activity');

/** How long periodic tasks still visit a pool without work for them, milliseconds. */
const SLEEPS_AFTER_MS = 10_000;

/**
 * The pools that have state in Redis. The periodic tasks of every replica visit the pools that are awake. A pool enters
 * with its first server or worker. A pool without work for periodic tasks falls asleep; the next call of the pool or
 * {@link reviewAsleep} wakes it. When Redis has lost the directory, the next call of a pool enters it again.
 */
export class PoolDirectory {
  /** Pools in the sets of all pools and of awake pools, as far as this process knows. */
  private readonly known = new Set<PoolName>();
  private readonly idleSinceMs = new Map<PoolName, number>();
  private readonly scripts: FunctionRunner;
  private readonly allKey: string;
  private readonly awakeKey: string;

  constructor(
    private readonly redis: RedisClient,
    private readonly keyPrefix: string,
  ) {
    this.scripts = new FunctionRunner(redis, keyPrefix);
    this.allKey = `${keyPrefix}:pools`;
    this.awakeKey = `${keyPrefix}:pools-awake`;
  }

  /** Enters a pool as awake. Does nothing if this process has entered it before. @throws BroomwagonError UNAVAILABLE */
  async add(pool: PoolName): Promise<void> {
    if (this.known.has(pool)) return;
    if (!POOL_PATTERN.test(pool)) {
      throw new BroomwagonError('VALIDATION_FAILED', `The pool name must match ${POOL_PATTERN.source}`, {
        field: 'pool',
      });
    }
    await awaitAnswer(this.redis.sadd(this.allKey, pool));
    await awaitAnswer(this.redis.sadd(this.awakeKey, pool));
    this.known.add(pool);
  }

  /** All pools, sorted. @throws BroomwagonError UNAVAILABLE */
  async list(): Promise<PoolName[]> {
    return this.stillKnown(await awaitAnswer(this.redis.smembers(this.allKey)));
  }

  /**
   * The random id of this deployment, created once and stored in Redis.
   * @returns undefined when it was created just now, because Redis may still lose it
   * @throws BroomwagonError UNAVAILABLE
   */
  async deployment(): Promise<string | undefined> {
    const key = `${this.keyPrefix}:deployment`;
    const isMade = await awaitAnswer(this.redis.set(key, randomUUID(), 'NX'));
    return isMade ? undefined : ((await awaitAnswer(this.redis.get(key))) ?? undefined);
  }

  /** Pools that are awake, sorted. @throws BroomwagonError UNAVAILABLE */
  async awake(): Promise<PoolName[]> {
    return this.stillKnown(await awaitAnswer(this.redis.smembers(this.awakeKey)));
  }

  /**
   * Pools that the periodic tasks of an app visit: the configured pools, or all pools that are awake.
   * @throws BroomwagonError UNAVAILABLE
   */
  async served(configured: '*' | readonly PoolName[]): Promise<readonly PoolName[]> {
    return configured === '*' ? this.awake() : configured;
  }

  /** Pools that are asleep, sorted. @throws BroomwagonError UNAVAILABLE */
  async asleep(): Promise<PoolName[]> {
    // Two calls: in a Cluster the two sets are on different nodes.
    const awake = new Set(await awaitAnswer(this.redis.smembers(this.awakeKey)));
    const all = await awaitAnswer(this.redis.smembers(this.allKey));
    return sortTexts(all.filter((pool) => !awake.has(pool)));
  }

  /** @throws BroomwagonError UNAVAILABLE */
  readActivity(pool: PoolName): Promise<PoolActivity> {
    return this.scripts.run(activity, pool, {});
  }

  /** Lets pools that have been idle for a while fall asleep. @throws BroomwagonError UNAVAILABLE */
  async review(nowMs = Date.now()): Promise<void> {
    for (const pool of await this.awake()) {
      if ((await this.readActivity(pool)).awake) {
        this.idleSinceMs.delete(pool);
        continue;
      }
      const sinceMs = this.idleSinceMs.get(pool) ?? nowMs;
      this.idleSinceMs.set(pool, sinceMs);
      if (nowMs - sinceMs < SLEEPS_AFTER_MS) continue;
      this.idleSinceMs.delete(pool);
      this.known.delete(pool);
      await awaitAnswer(this.redis.srem(this.awakeKey, pool));
      await this.wakeIfBusy(pool);
    }
  }

  /** Wakes sleeping pools that were given work without {@link add}. @throws BroomwagonError UNAVAILABLE */
  async reviewAsleep(): Promise<void> {
    for (const pool of await this.asleep()) await this.wakeIfBusy(pool);
  }

  /** Removes a deleted pool. @throws BroomwagonError UNAVAILABLE */
  async remove(pool: PoolName): Promise<void> {
    this.known.delete(pool);
    await awaitAnswer(this.redis.srem(this.awakeKey, pool));
    await awaitAnswer(this.redis.srem(this.allKey, pool));
  }

  /** Forgets pools that Redis has lost, so that their next {@link add} enters them again. @returns the pools, sorted */
  private stillKnown(pools: PoolName[]): PoolName[] {
    for (const pool of this.known) if (!pools.includes(pool)) this.known.delete(pool);
    return sortTexts(pools);
  }

  private async wakeIfBusy(pool: PoolName): Promise<void> {
    if ((await this.readActivity(pool)).awake) await awaitAnswer(this.redis.sadd(this.awakeKey, pool));
  }
}
