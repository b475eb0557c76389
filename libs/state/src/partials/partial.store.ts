import { createHash } from 'node:crypto';
import { awaitAnswer } from '../redis';
import type { RedisClient } from '../redis-cluster';

/**
 * Tokens of responses that no client has received completely, by the identity of the request. A client may repeat a
 * request at another replica of the gateway: this replica gets the tokens with its claim (`PartialOwnerStore`). Each
 * save has all tokens and replaces the previous save. Saved tokens that are not removed expire.
 */
export class PartialStore {
  constructor(
    private readonly redis: RedisClient,
    private readonly keyPrefix: string,
  ) {}

  /** @param partial JSON @param expiresMs time until the partial is removed @throws BroomwagonError UNAVAILABLE */
  async save(pool: string, identity: string, partial: string, expiresMs: number): Promise<void> {
    await awaitAnswer(this.redis.set(this.buildKey(pool, identity), partial, 'PX', expiresMs));
  }

  private buildKey(pool: string, identity: string): string {
    return `${this.keyPrefix}:{${pool}}:partial:${hashOfIdentity(identity)}`;
  }
}

/** SHA-256, so that keys are short whatever a client has named its request. */
export function hashOfIdentity(identity: string): string {
  return createHash('sha256').update(identity).digest('base64url');
}
