import { createHash, randomUUID } from 'node:crypto';
import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';
import { answerOf } from '../redis';
import type { RedisClient } from '../redis-cluster';

/** A reply is stored for a repeat for this long, milliseconds. */
const KEPT_MS = 86_400_000;
/** A replica that dies while it processes a request leaves the key taken for this long, milliseconds. */
const RUNNING_MS = 15_000;
/** A longer reply is not stored: a repeat is processed again. */
const MOST_BYTES = 65_536;

interface StoredReply {
  fingerprint: string;
  /** Absent while the request is processed, and when its replica died before its end. */
  reply?: object;
}

/**
 * Replies to requests with an `Idempotency-Key`: one string in Redis for each, with a time to live. While a request is
 * processed, a second key records this, with a short time to live that its replica renews.
 */
export class ReplyStore {
  constructor(
    private readonly redis: RedisClient,
    private readonly keyPrefix: string,
  ) {}

  /**
   * Processes a request once: a repeat with the same key and the same request gets the first reply. After an error
   * other than OUTCOME_UNKNOWN the key is free again.
   * @param key of the caller, unique with `scope`
   * @param request the whole request
   * @param process gets true if a replica died while it processed the request: then its effect may be there
   * @throws BroomwagonError IDEMPOTENCY_KEY_REUSED, REQUEST_IN_PROGRESS, UNAVAILABLE, and those of `process`
   */
  async once(
    scope: string,
    key: string,
    request: object,
    process: (isInterrupted: boolean) => Promise<object>,
  ): Promise<{ reply: object; isRepeat: boolean }> {
    const name = `${this.keyPrefix}:replies:${digestOf([scope, key])}`;
    const fingerprint = digestOf(request);
    const running = `${name}:running`;
    if ((await answerOf(this.redis.set(running, randomUUID(), 'PX', RUNNING_MS, 'NX'))) === null) {
      const reply = (await this.read(name, fingerprint))?.reply;
      if (reply !== undefined) return { reply, isRepeat: true };
      const message = 'The first request with this Idempotency-Key has no reply yet';
      throw new BroomwagonError('REQUEST_IN_PROGRESS', message, { retryAfterMs: 1_000 });
    }
    const renewal = setInterval(
      () => void this.redis.pexpire(running, RUNNING_MS).catch(() => undefined),
      RUNNING_MS / 3,
    );
    try {
      const stored = await this.read(name, fingerprint);
      if (stored?.reply !== undefined) return { reply: stored.reply, isRepeat: true };
      if (stored === undefined) await this.write(name, { fingerprint });
      return { reply: await this.process(name, fingerprint, () => process(stored !== undefined)), isRepeat: false };
    } finally {
      clearInterval(renewal);
      await this.redis.del(running).catch(() => undefined);
    }
  }

  private async process(name: string, fingerprint: string, process: () => Promise<object>): Promise<object> {
    let reply: object;
    try {
      reply = await process();
    } catch (error) {
      if (!isBroomwagonError(error, 'OUTCOME_UNKNOWN')) await this.redis.del(name).catch(() => undefined);
      throw error;
    }
    await this.write(name, { fingerprint, reply });
    return reply;
  }

  private async read(name: string, fingerprint: string): Promise<StoredReply | undefined> {
    const text = await answerOf(this.redis.get(name));
    const stored = text === null ? undefined : (JSON.parse(text) as StoredReply);
    if (stored !== undefined && stored.fingerprint !== fingerprint) {
      throw new BroomwagonError('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another request', {
        field: 'Idempotency-Key',
      });
    }
    return stored;
  }

  private async write(name: string, reply: StoredReply): Promise<void> {
    const text = JSON.stringify(reply);
    if (text.length > MOST_BYTES) await answerOf(this.redis.del(name));
    else await answerOf(this.redis.set(name, text, 'PX', KEPT_MS));
  }
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
