import { createHash, randomUUID } from 'node:crypto';
import { BroomwagonError } from '@broomwagon/contracts';
import { awaitAnswer } from '../redis';
import type { RedisClient } from '../redis-cluster';

/** How long a record is kept for a repeat, milliseconds. */
const KEPT_MS = 86_400_000;
/** How long a key stays taken when a replica dies while it processes the request, milliseconds. */
const RUNNING_MS = 15_000;
/** Maximum length of a stored reply. The outcome of a request with a longer reply counts as unknown. */
const MAX_BYTES = 16_384;
/**
 * Maximum keys of one scope within {@link KEPT_MS}. With {@link MAX_BYTES}, the bound of the data of a token in Redis.
 */
const MAX_KEYS = 10_000;

/** Both scripts do nothing when the mark has another value: another replica processes the request. */
const RENEW = `return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2])`;
const WRITE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[2]) else redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) end
return 1`;

interface StoredReply {
  fingerprint: string;
  /** First reply; absent while the request is processed, and when its outcome is not known. */
  reply?: object;
}

/** One replica that processes the request of a record, with its mark. */
interface Run {
  name: string;
  mark: string;
  value: string;
}

/** A request with an `Idempotency-Key`. */
export interface KeyedRequest {
  /** Owner of the key, for example the id of a token. */
  scope: string;
  /** Unique within the scope. */
  key: string;
  request: object;
  /** @param isInterrupted an earlier request with the key has an unknown outcome, and may have taken effect */
  process(isInterrupted: boolean): Promise<object>;
  /** True for an error after which the request may have taken effect nevertheless. */
  mayHaveEffect(error: unknown): boolean;
}

/**
 * Replies to requests with an `Idempotency-Key`: one string in Redis for each, with a time to live. A second key in
 * Redis marks a request that is being processed, with the id of the run and a short time to live that the replica
 * renews.
 */
export class ReplyStore {
  constructor(
    private readonly redis: RedisClient,
    private readonly keyPrefix: string,
    private readonly mostKeys = MAX_KEYS,
  ) {}

  /**
   * Processes a request once: a repeat with the same key and the same request gets the first reply. After an error
   * without an effect the key is free again.
   * @throws BroomwagonError IDEMPOTENCY_KEY_REUSED, REQUEST_IN_PROGRESS, RATE_LIMITED, UNAVAILABLE, and errors of
   *   `process`
   */
  async once(keyed: KeyedRequest): Promise<{ reply: object; isRepeat: boolean }> {
    const name = `${this.keyPrefix}:replies:{${computeDigest([keyed.scope, keyed.key])}}`;
    const fingerprint = computeDigest(keyed.request);
    const run: Run = { name, mark: `${name}:running`, value: randomUUID() };
    if ((await awaitAnswer(this.redis.set(run.mark, run.value, 'PX', RUNNING_MS, 'NX'))) === null) {
      const reply = (await this.read(name, fingerprint))?.reply;
      if (reply !== undefined) return { reply, isRepeat: true };
      throw inProgress();
    }
    const keepMark = (ms: number) => this.redis.eval(RENEW, 1, run.mark, run.value, ms).catch(() => undefined);
    const renewal = setInterval(() => void keepMark(RUNNING_MS), RUNNING_MS / 3);
    try {
      const stored = await this.read(name, fingerprint);
      if (stored?.reply !== undefined) return { reply: stored.reply, isRepeat: true };
      if (stored === undefined) await this.begin(run, keyed.scope, fingerprint);
      return { reply: await this.process(run, keyed, fingerprint, stored !== undefined), isRepeat: false };
    } finally {
      clearInterval(renewal);
      await keepMark(0);
    }
  }

  /** Writes the record without a reply, within the bound of the scope. */
  private async begin(run: Run, scope: string, fingerprint: string): Promise<void> {
    const counter = this.buildCounterKey(scope);
    const keys = await awaitAnswer(this.redis.incr(counter));
    await awaitAnswer(this.redis.pexpire(counter, KEPT_MS, 'NX'));
    if (keys > this.mostKeys) {
      const retryAfterMs = Math.max(1, await awaitAnswer(this.redis.pttl(counter)));
      const message = `This token has used ${this.mostKeys} Idempotency-Keys within a day; send changes without one`;
      throw new BroomwagonError('RATE_LIMITED', message, { retryAfterMs });
    }
    if (!(await this.write(run, { fingerprint }))) throw inProgress();
  }

  private async process(run: Run, keyed: KeyedRequest, fingerprint: string, isInterrupted: boolean): Promise<object> {
    let reply: object;
    try {
      reply = await keyed.process(isInterrupted);
    } catch (error) {
      if (!keyed.mayHaveEffect(error)) {
        await this.write(run, undefined).catch(() => undefined);
        await this.redis.decr(this.buildCounterKey(keyed.scope)).catch(() => undefined);
      }
      throw error;
    }
    if (JSON.stringify(reply).length <= MAX_BYTES) await this.write(run, { fingerprint, reply });
    return reply;
  }

  private buildCounterKey(scope: string): string {
    return `${this.keyPrefix}:reply-keys:${computeDigest(scope)}`;
  }

  private async read(name: string, fingerprint: string): Promise<StoredReply | undefined> {
    const text = await awaitAnswer(this.redis.get(name));
    const stored = text === null ? undefined : (JSON.parse(text) as StoredReply);
    if (stored !== undefined && stored.fingerprint !== fingerprint) {
      throw new BroomwagonError('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another request', {
        field: 'Idempotency-Key',
      });
    }
    return stored;
  }

  /** Writes the record, or deletes it if `record` is undefined. @returns false if another replica has the mark */
  private async write({ name, mark, value }: Run, record: StoredReply | undefined): Promise<boolean> {
    const text = record === undefined ? '' : JSON.stringify(record);
    return (await awaitAnswer(this.redis.eval(WRITE, 2, mark, name, value, text, KEPT_MS))) === 1;
  }
}

function inProgress(): BroomwagonError {
  const message = 'The first request with this Idempotency-Key has no reply yet';
  return new BroomwagonError('REQUEST_IN_PROGRESS', message, { retryAfterMs: 1_000 });
}

function computeDigest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
