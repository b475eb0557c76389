import { createHash } from 'node:crypto';
import { BroomwagonError } from '@broomwagon/contracts';
import { answerOf } from '../redis';
import type { RedisClient } from '../redis-cluster';

/** A reply is kept for a repeat for this long, milliseconds. */
const KEPT_MS = 86_400_000;
/** A replica that dies while it processes a request leaves the key for this long, milliseconds. */
const RUNNING_MS = 60_000;
/** A longer reply is not kept: a repeat is processed again. */
const MOST_BYTES = 65_536;

interface StoredReply {
  fingerprint: string;
  /** Absent while the request is processed. */
  reply?: object;
}

/** Replies to requests with an `Idempotency-Key`: one string in Redis for each, with a time to live. */
export class ReplyStore {
  constructor(
    private readonly redis: RedisClient,
    private readonly keyPrefix: string,
  ) {}

  /**
   * Processes a request once: a repeat with the same key and the same request gets the first reply. After an error the
   * key is free again.
   * @param key of the caller, unique with `scope`
   * @param request all that the request says
   * @throws BroomwagonError IDEMPOTENCY_KEY_REUSED, REQUEST_IN_PROGRESS, UNAVAILABLE, and those of `process`
   */
  async once(
    scope: string,
    key: string,
    request: object,
    process: () => Promise<object>,
  ): Promise<{ reply: object; isRepeat: boolean }> {
    const name = `${this.keyPrefix}:replies:${digestOf([scope, key])}`;
    const fingerprint = digestOf(request);
    const running = JSON.stringify({ fingerprint } satisfies StoredReply);
    if ((await answerOf(this.redis.set(name, running, 'PX', RUNNING_MS, 'NX'))) === null) {
      const text = await answerOf(this.redis.get(name));
      const stored = text === null ? undefined : (JSON.parse(text) as StoredReply);
      if (stored !== undefined && stored.fingerprint !== fingerprint) {
        throw new BroomwagonError('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another request', {
          field: 'Idempotency-Key',
        });
      }
      if (stored?.reply === undefined) {
        throw new BroomwagonError(
          'REQUEST_IN_PROGRESS',
          'The first request with this Idempotency-Key has no reply yet',
          {
            retryAfterMs: 1_000,
          },
        );
      }
      return { reply: stored.reply, isRepeat: true };
    }
    try {
      const reply = await process();
      const stored = JSON.stringify({ fingerprint, reply } satisfies StoredReply);
      if (stored.length > MOST_BYTES) await answerOf(this.redis.del(name));
      else await answerOf(this.redis.set(name, stored, 'PX', KEPT_MS));
      return { reply, isRepeat: false };
    } catch (error) {
      await this.redis.del(name).catch(() => undefined);
      throw error;
    }
  }
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
