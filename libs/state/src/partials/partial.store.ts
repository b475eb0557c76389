import { createHash } from 'node:crypto';
import { answerOf } from '../redis';
import type { RedisClient } from '../redis-cluster';

/**
 * Tokens of responses that no client has got whole, by the identity of their requests: a replica of the gateway saves
 * them for the replica to which a client repeats its request, which gets them with its claim (`PartialOwnerStore`).
 * Each save replaces the one before and is complete, so the order of two saves does not matter. What is not removed
 * expires.
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

  private keyOf(pool: string, identity: string): string {
    return `${this.keyPrefix}:{${pool}}:partial:${hashOfIdentity(identity)}`;
  }
}

/** SHA-256, so that keys are short whatever a client has named its request. */
export function hashOfIdentity(identity: string): string {
  return createHash('sha256').update(identity).digest('base64url');
}
