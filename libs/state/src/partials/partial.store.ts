import { createHash } from 'node:crypto';
import { answerOf } from '../redis';
import type { RedisClient } from '../redis-cluster';

/**
 * Tokens of responses that are not complete, by the identity of their requests: a replica of the gateway saves them for
 * the replica to which a client repeats its request. Each save replaces the one before and is complete, so the order of
 * two saves does not matter, and each call is one command. What is not removed expires.
 */
export class PartialStore {
  constructor(
    private readonly redis: RedisClient,
    private readonly keyPrefix: string,
  ) {}

  /** @param partial JSON @param expiresMs time until it is removed @throws BroomwagonError UNAVAILABLE */
  async save(pool: string, identity: string, partial: string, expiresMs: number): Promise<void> {
    await answerOf(this.redis.set(this.keyOf(pool, identity), partial, 'PX', expiresMs));
  }

  /** @returns undefined if there is none @throws BroomwagonError UNAVAILABLE */
  async find(pool: string, identity: string): Promise<string | undefined> {
    return (await answerOf(this.redis.get(this.keyOf(pool, identity)))) ?? undefined;
  }

  /** @throws BroomwagonError UNAVAILABLE */
  async remove(pool: string, identity: string): Promise<void> {
    await answerOf(this.redis.del(this.keyOf(pool, identity)));
  }

  private keyOf(pool: string, identity: string): string {
    return `${this.keyPrefix}:{${pool}}:partial:${createHash('sha256').update(identity).digest('base64url')}`;
  }
}
