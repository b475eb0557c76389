import { createHash } from 'node:crypto';
import { awaitAnswer } from '../redis';
import type { RedisClient } from '../redis-cluster';

/** One save of the tokens of a response. */
export interface PartialSave {
  /** Identity of the request. */
  identity: string;
  /** JSON. */
  partial: string;
  /** Number of the save among those that were added to the first one; absent: it has all tokens, and replaces these. */
  piece?: number;
}

/**
 * Tokens of responses that no client has received completely, by the identity of the request. A client may repeat a
 * request at another replica of the gateway: this replica gets the tokens with its claim (`PartialOwnerStore`). The
 * first save has all tokens, and a later one those since the save before: two keys, since the version before reads only
 * the first. Pieces that do not continue what is saved are for the reader to leave out. Saved tokens that are not
 * removed expire.
 */
export class PartialStore {
  constructor(
    private readonly redis: RedisClient,
    private readonly keyPrefix: string,
  ) {}

  /**
   * Saves tokens of several responses, with one write to the connection.
   * @param expiresMs time until they are removed
   * @returns the error of each save, if there is one; also if Redis has lost the saves before it. Never throws
   */
  async save(pool: string, saves: readonly PartialSave[], expiresMs: number): Promise<(Error | undefined)[]> {
    const pipeline = this.redis.pipeline();
    for (const { identity, partial, piece } of saves) {
      const hash = hashOfIdentity(identity);
      const [whole, pieces] = [this.buildKey(pool, hash), this.buildKey(pool, `pieces:${hash}`)];
      if (piece === undefined) pipeline.set(whole, partial, 'PX', expiresMs).del(pieces);
      else pipeline.rpush(pieces, partial).pexpire(whole, expiresMs);
      pipeline.pexpire(pieces, expiresMs);
    }
    try {
      const answers = (await awaitAnswer(pipeline.exec()))!;
      return saves.map(({ piece }, index) => {
        const [first, second, third] = answers.slice(3 * index, 3 * index + 3) as [Answer, Answer, Answer];
        const error = first[0] ?? second[0] ?? third[0];
        if (error !== null || piece === undefined) return error ?? undefined;
        return first[1] === piece && second[1] === 1 ? undefined : new Error('Redis has lost the saves before');
      });
    } catch (error) {
      return saves.map(() => error as Error);
    }
  }

  private buildKey(pool: string, name: string): string {
    return `${this.keyPrefix}:{${pool}}:partial:${name}`;
  }
}

type Answer = [error: Error | null, result: unknown];

/** SHA-256, so that keys are short whatever a client has named its request. */
export function hashOfIdentity(identity: string): string {
  return createHash('sha256').update(identity).digest('base64url');
}
