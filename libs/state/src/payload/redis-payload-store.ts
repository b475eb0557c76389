import { BroomwagonError, isBroomwagonError, LIMITS, type WireError } from '@broomwagon/contracts';
import type { RedisClient } from '../redis-cluster';
import type { RedisLink } from '../redis-link';
import type { RedisMemory } from '../redis-memory';
import { awaitAnswer, readTime } from '../redis';
import { FunctionRunner, transition, type PassedArgs, type Transition } from '../library/function-runner';
import { groupBy } from '../library/lists';
import { formatPayloadRef, type PayloadName } from './payload-ref';
import type { NewPayload } from './put-pages';
import { PayloadStore, type FoundPayload, type LookAtPage, type PayloadJob, type PayloadUsage } from './payload-store';

/** Transition that stores a chunk; the chunk is the attachment. */
const PUT_CHUNK = transition<
  { item: string; index: number; count: number; quotaBytes: number },
  { receivedChunks: number; usedBytes: number }
>('payload/put-chunk');
/** Transition that stores payloads of one chunk; the chunks are the attachments. */
const PUT_MANY = transition<{ items: string[]; quotaBytes: number }, { results: { error?: WireError }[] }>(
  'payload/put-many',
);
const FREE = transition<{ items: string[]; hold: boolean }, { bytes: number[] }>('payload/free');
const REMOVE = transition<
  { items: string[]; cutoffMs?: number; incomplete?: true; keepMs?: number },
  { removed: number }
>('payload/remove');
const REMEMBER_JOB = transition<{ job: string }, object>('payload/remember-job');
const FORGET_JOB = transition<{ job: string; cutoffMs: number }, { forgotten: boolean }>('payload/forget-job');

/** Root of the registry of jobs. No pool has this name, because names of pools contain no `~`. */
const REGISTRY = '~jobs';
/** Number of fields in the hash of a payload that are no chunks. */
const HEADER_FIELDS = 3;

/** Payloads in Redis: one hash each, on a separate connection so that large values never delay a transition. */
export class RedisPayloadStore extends PayloadStore {
  protected readonly driver = 'redis';
  private readonly scripts: FunctionRunner;

  /**
   * @param redis connection that the store owns from now on
   * @param keyPrefix first part of every key; the keys of a job are `<prefix>:payload:{<pool>/<job>}:...`
   * @param quotaBytes quota of each job
   * @param memory memory of this Redis, which bounds the payloads of all jobs together; stopped with the store. Without
   *   it there is no such bound
   * @param link reports why the connection is down
   */
  constructor(
    private readonly redis: RedisClient,
    keyPrefix: string,
    private readonly quotaBytes: number,
    private readonly memory?: RedisMemory,
    private readonly link?: RedisLink,
  ) {
    super();
    this.scripts = new FunctionRunner(redis, `${keyPrefix}:payload`, memory);
  }

  protected async writeAll(payload: PayloadName, chunks: Buffer[]): Promise<void> {
    try {
      for (const [index, chunk] of chunks.entries()) await this.writeChunk(payload, index, chunks.length, chunk);
    } catch (error) {
      // If this fails too, the sweep of orphans removes the chunks.
      const items = [toItem(payload)];
      await this.scripts.run(REMOVE, toJobKey(payload), { items, incomplete: true }).catch(() => undefined);
      throw error;
    }
  }

  protected async writeChunk(payload: PayloadName, index: number, count: number, bytes: Buffer): Promise<number> {
    const job = toJobKey(payload);
    const args = { item: toItem(payload), index, count, quotaBytes: this.quotaBytes };
    return (await this.runOnJob(job, PUT_CHUNK, args, bytes)).receivedChunks;
  }

  private async runOnJob<Args extends object, Reply>(
    job: string,
    target: Transition<Args, Reply>,
    args: PassedArgs<Args>,
    ...bytes: Buffer[]
  ): Promise<Reply> {
    // One connection keeps the order, so the job is in the registry before its chunks are stored.
    try {
      const [, reply] = await Promise.all([
        this.scripts.run(REMEMBER_JOB, REGISTRY, { job }),
        this.scripts.run(target, job, args, ...bytes),
      ]);
      return reply;
    } catch (cause) {
      if (!isBroomwagonError(cause, 'STORE_FULL')) throw cause;
      const { retryAfterMs } = cause;
      throw new BroomwagonError('PAYLOAD_STORE_FULL', `No payload is stored: ${cause.message}`, {
        cause,
        retryAfterMs,
      });
    }
  }

  protected override async putPage(page: readonly NewPayload[]): Promise<(string | Error)[]> {
    if (page.length === 1) return super.putPage(page);
    const refs = page.map(({ payload }) => formatPayloadRef(this.driver, payload));
    const args = { items: page.map(({ payload }) => toItem(payload)), quotaBytes: this.quotaBytes };
    const bytes = page.map((one) => one.bytes);
    const { results } = await this.runOnJob(toJobKey(page[0]!.payload), PUT_MANY, args, ...bytes);
    return results.map(({ error }, index) => (error ? BroomwagonError.fromWire(error) : refs[index]!));
  }

  protected async find(payload: PayloadName, index?: number): Promise<FoundPayload | undefined> {
    const key = `${this.scripts.rootKey(toJobKey(payload))}:item:${toItem(payload)}`;
    const fields = ['count', 'bytes', 'at', ...(index === undefined ? [] : [String(index)])];
    const [count, bytes, at, chunk] = await available(this.redis.hmgetBuffer(key, ...fields));
    const chunkCount = Number(count ?? 0);
    // The first chunk and the header are written together.
    const present = chunkCount > 1 ? await available(this.redis.hlen(key)) : chunkCount && HEADER_FIELDS + 1;
    // A payload of several chunks may be removed between the two reads.
    if (present === 0) return undefined;
    return {
      bytes: Number(bytes),
      chunkCount,
      storedAtMs: Number(at),
      receivedChunks: present - HEADER_FIELDS,
      chunk: chunk ?? undefined,
    };
  }

  async checkWritable(): Promise<void> {
    const problem = this.link?.problem();
    if (problem !== undefined) throw new BroomwagonError('UNAVAILABLE', problem);
    // With these arguments the transition writes nothing, but a replica refuses it.
    await this.scripts.run(FORGET_JOB, REGISTRY, { job: '', cutoffMs: 0 });
  }

  nowMs(): Promise<number> {
    return available(readTime(this.redis));
  }

  protected async setFreed(page: readonly [string, PayloadName][], isFreed: boolean): Promise<number[]> {
    const bytes = new Map<PayloadName, number>();
    for (const [job, payloads] of byJob(page.map(([, payload]) => payload))) {
      if (!isFreed) await this.scripts.run(REMEMBER_JOB, REGISTRY, { job });
      const reply = await this.scripts.run(FREE, job, { items: payloads.map(toItem), hold: !isFreed });
      for (const [position, payload] of payloads.entries()) bytes.set(payload, reply.bytes[position]!);
    }
    return page.map(([, payload]) => bytes.get(payload)!);
  }

  protected async removePage(page: readonly PayloadName[], cutoffMs?: number, keepMs?: number): Promise<number> {
    let removed = 0;
    for (const [job, payloads] of byJob(page)) {
      removed += (await this.scripts.run(REMOVE, job, { items: payloads.map(toItem), cutoffMs, keepMs })).removed;
    }
    return removed;
  }

  protected async eachOld(cutoffMs: number, pageSize: number, look: LookAtPage): Promise<void> {
    for await (const job of this.jobs()) {
      let skip = 0;
      for (let isLast = false; !isLast;) {
        const key = this.buildIndexKey(job);
        const items = await available(this.redis.zrangebyscore(key, '-inf', cutoffMs, 'LIMIT', skip, pageSize));
        const isEmpty = items.length === 0 && (await available(this.redis.exists(key))) === 0;
        if (isEmpty) await this.scripts.run(FORGET_JOB, REGISTRY, { job, cutoffMs });
        isLast = items.length < pageSize;
        const stay = items.length === 0 ? 0 : await look(items.map((item) => parseItem(job, item)));
        if (stay === 'stop') return;
        skip += stay;
      }
    }
  }

  protected async touch(page: readonly PayloadName[]): Promise<void> {
    const nowMs = await this.nowMs();
    for (const [job, payloads] of byJob(page)) {
      const scores = payloads.flatMap((payload) => [String(nowMs), toItem(payload)]);
      await available(this.redis.zadd(this.buildIndexKey(job), 'XX', ...scores));
    }
  }

  async countAll(): Promise<number> {
    let count = 0;
    for await (const job of this.jobs()) {
      count += await available(this.redis.zcard(this.buildIndexKey(job)));
    }
    return count;
  }

  async usedBy(deployment: string): Promise<string[]> {
    await available(this.redis.sadd(this.deploymentsKey, deployment));
    const all = await available(this.redis.smembers(this.deploymentsKey));
    return all.filter((one) => one !== deployment);
  }

  async adopt(deployment: string): Promise<void> {
    const others = await this.usedBy(deployment);
    if (others.length > 0) await available(this.redis.srem(this.deploymentsKey, others));
  }

  async removeAll(of: PayloadJob): Promise<void> {
    const job = toJobKey(of);
    for (let items: string[]; ;) {
      items = await available(this.redis.zrange(this.buildIndexKey(job), '0', String(LIMITS.page - 1)));
      if (items.length === 0) break;
      await this.scripts.run(REMOVE, job, { items });
    }
    await this.scripts.run(FORGET_JOB, REGISTRY, { job, cutoffMs: Number.MAX_SAFE_INTEGER });
  }

  async usage(of: PayloadJob): Promise<PayloadUsage> {
    const used = await available(this.redis.hget(`${this.scripts.rootKey(toJobKey(of))}:meta`, 'usedBytes'));
    const usedBytes = Number(used ?? 0);
    return { usedBytes, quotaBytes: Math.min(this.quotaBytes, usedBytes + (this.memory?.freeBytes() ?? Infinity)) };
  }

  async close(): Promise<void> {
    this.memory?.stop();
    await this.redis.quit().catch(() => this.redis.disconnect());
  }

  /** Names of registered jobs. Some may have no payloads. */
  private async *jobs(): AsyncGenerator<string> {
    const key = `${this.scripts.rootKey(REGISTRY)}:registry`;
    let cursor = '0';
    do {
      const [next, flat] = await available(this.redis.zscan(key, cursor, 'COUNT', LIMITS.page));
      cursor = next;
      yield* flat.filter((_, position) => position % 2 === 0);
    } while (cursor !== '0');
  }

  /** Key of the index of payloads, by the time they were stored or last found to have an owner, milliseconds. */
  private buildIndexKey(job: string): string {
    return `${this.scripts.rootKey(job)}:index`;
  }

  private get deploymentsKey(): string {
    return `${this.scripts.rootKey(REGISTRY)}:deployments`;
  }
}

/** @throws BroomwagonError UNAVAILABLE */
function available<T>(answer: Promise<T>): Promise<T> {
  return awaitAnswer(answer, 'The payload store');
}

/** Name of a job of a pool in keys: root of its keys, and member of the registry. */
function toJobKey({ pool, job }: PayloadJob): string {
  return `${pool}/${job}`;
}
function parseItem(job: string, item: string): PayloadName {
  const [slash, end] = [job.indexOf('/'), item.lastIndexOf('~')];
  const of = { pool: job.slice(0, slash), job: job.slice(slash + 1) };
  return { ...of, owner: item.slice(0, end), name: item.slice(end + 1) };
}
function byJob(payloads: readonly PayloadName[]): Map<string, PayloadName[]> {
  return groupBy(payloads, toJobKey);
}
function toItem({ owner, name }: PayloadName): string {
  return `${owner}~${name}`;
}
