import { BroomwagonError, LIMITS } from '@broomwagon/contracts';
import pLimit from 'p-limit';
import { splitPages } from '../library/lists';
import { checkChunk, splitChunks } from './chunks';
import { putPages, type NewPayload } from './put-pages';
import { formatPayloadRef, parsePayloadRef, type PayloadDriver, type PayloadName } from './payload-ref';

/** Size and age of a complete payload. */
export interface PayloadStat {
  bytes: number;
  chunkCount: number;
  storedAtMs: number;
}
export interface PayloadChunk extends PayloadStat {
  data: Buffer;
  chunkIndex: number;
}
export interface PutChunkReply {
  /** Reference of the payload; set when all chunks are stored. */
  ref?: string;
  receivedChunks: number;
}
export interface PayloadSweep {
  /** Payloads that were old enough to have their owners checked. */
  examined: number;
  /** Payloads whose owner no longer exists. In a refused sweep, the number found before it stopped. */
  orphans: number;
  removed: number;
  /** True when nothing was removed, because too many payloads would have been. */
  isRefused: boolean;
}
export interface PayloadSweepOptions {
  /** Payloads handled together, at most 128. */
  pageSize?: number;
  /** Removes all payloads without an owner, however many there are. */
  isUnbounded?: boolean;
}
/** A payload, complete or not, with the requested chunk. */
export interface FoundPayload extends PayloadStat {
  receivedChunks: number;
  chunk?: Buffer;
}
/** Handles a page of old payloads. @returns how many of them are as old as before; `stop` for no further page */
export type LookAtPage = (page: readonly PayloadName[]) => Promise<number | 'stop'>;
/** Job to whose quota payloads count. */
export type PayloadJob = Pick<PayloadName, 'pool' | 'job'>;
export interface PayloadUsage {
  usedBytes: number;
  quotaBytes: number;
}
/** Whether the owner of a payload still exists. Called only for payloads of some age. */
export type PayloadOwnership = (payload: PayloadName, ref: string) => Promise<boolean>;

/** Time for which swept payloads can be restored, milliseconds. */
export const SWEPT_KEPT_MS = 86_400_000;
/**
 * Maximum pages of payloads that are written at once, 4 MB. Each page has a deadline, which the last of many pages
 * would miss: then all pages would be written again.
 */
const MAX_PAGES = 16;
/** In a store with at least so many payloads, a sweep removes at most a tenth of them. */
const BOUNDED_FROM = 1_000;

/**
 * Store of prompts and tokens, by reference; queues and transitions never contain them. A payload is named by its pool,
 * its job, its owner (a groupId or requestId) and a name (`prompt`, or the attempt). Jobs of the same name in two pools
 * share nothing. A complete payload never changes: its reference leads to the same bytes, or to nothing.
 *
 * All bytes of a job count to its quota, except for payloads that wait for their removal. Every driver passes
 * `payload-store-conformance.fixture.ts`. This class is also the injection token.
 */
export abstract class PayloadStore {
  private readonly limit = pLimit(MAX_PAGES);

  /**
   * Stores a payload of any size up to 64 MiB. Safe to repeat.
   * @returns reference of at most 2,048 characters, with driver, pool, job, owner and name
   * @throws BroomwagonError PAYLOAD_STORE_FULL (quota of the job), PAYLOAD_EXISTS (another payload has this name),
   *   PAYLOAD_TOO_LARGE, VALIDATION_FAILED (a name), UNAVAILABLE
   */
  async put(payload: PayloadName, bytes: Buffer): Promise<string> {
    const ref = formatPayloadRef(this.driver, payload);
    await this.writeAll(payload, splitChunks(bytes));
    return ref;
  }

  /**
   * Stores many payloads with fewer writes. Safe to repeat. Never throws.
   * @returns the reference of each payload, or the error that {@link put} would throw, in their order
   */
  putMany(payloads: readonly NewPayload[]): Promise<(string | Error)[]> {
    return putPages(payloads, (page) => this.limit(() => this.putPage(page)));
  }

  /**
   * Stores one chunk of at most 256 kB. Chunks may arrive in any order, and a call is safe to repeat. Until all chunks
   * are stored, a chunk may be replaced, and a different `count` discards the chunks stored before.
   * @throws BroomwagonError as {@link put}
   */
  async putChunk(payload: PayloadName, index: number, count: number, bytes: Buffer): Promise<PutChunkReply> {
    checkChunk(index, count, bytes);
    const ref = formatPayloadRef(this.driver, payload);
    const receivedChunks = await this.writeChunk(payload, index, count, bytes);
    return receivedChunks === count ? { ref, receivedChunks } : { receivedChunks };
  }

  /**
   * Checks that a reference is of this store and of this pool, job or owner.
   * @param field names the reference in the error
   * @throws BroomwagonError VALIDATION_FAILED for a reference of another store or of none, PAYLOAD_FOREIGN
   */
  requireRef(ref: string, of: Partial<PayloadName>, field = 'ref'): PayloadName {
    const named = parsePayloadRef(this.driver, ref, field);
    for (const [part, expected] of Object.entries(of) as [keyof PayloadName, string][]) {
      if (named[part] === expected) continue;
      const message = `${field}: the payload is of the ${part} ${named[part]}, not of ${expected}`;
      throw new BroomwagonError('PAYLOAD_FOREIGN', message, { field });
    }
    return named;
  }

  /** The whole payload. @throws BroomwagonError PAYLOAD_NOT_FOUND, PAYLOAD_INCOMPLETE, VALIDATION_FAILED (the ref) */
  async get(ref: string): Promise<Buffer> {
    const { data, chunkCount } = await this.getChunk(ref, 0);
    const chunks = [data];
    for (let index = 1; index < chunkCount; index++) chunks.push((await this.getChunk(ref, index)).data);
    return chunks.length === 1 ? data : Buffer.concat(chunks);
  }

  /** One chunk. @throws BroomwagonError as {@link get}; PAYLOAD_NOT_FOUND also for an index beyond the last chunk */
  async getChunk(ref: string, index: number): Promise<PayloadChunk> {
    const { stat, chunk } = await this.read(ref, index);
    if (chunk === undefined) throw new BroomwagonError('PAYLOAD_NOT_FOUND', `No chunk ${index} of payload ${ref}`);
    return { ...stat, data: chunk, chunkIndex: index };
  }

  /** @throws BroomwagonError as {@link get} */
  async stat(ref: string): Promise<PayloadStat> {
    return (await this.read(ref)).stat;
  }

  /**
   * Marks payloads that nothing refers to any more: they stay readable until they are removed, and count to no quota.
   * @returns the bytes of each; undefined for a reference without a payload, or of another store
   */
  async free(refs: readonly string[]): Promise<(number | undefined)[]> {
    const own = this.parseOwnRefs(refs);
    const bytes = new Map<string, number>();
    for (const page of splitPages([...own])) {
      const found = await this.setFreed(page, true);
      for (const [position, [ref]] of page.entries()) bytes.set(ref, found[position]!);
    }
    return refs.map((ref) => bytes.get(ref)).map((known) => (known === -1 ? undefined : known));
  }

  /**
   * Counts a freed payload to the quota again, because something refers to it. @throws BroomwagonError as {@link get}
   */
  async hold(ref: string): Promise<void> {
    await this.stat(ref);
    await this.setFreed([[ref, parsePayloadRef(this.driver, ref)]], false);
  }

  /**
   * Removes payloads, in pages of 128; references without a payload, or of another store, are skipped.
   * @param cutoffMs payloads that were stored after this time, by {@link nowMs}, stay
   * @returns number of removed payloads
   */
  async remove(refs: readonly string[], cutoffMs?: number): Promise<number> {
    let removed = 0;
    for (const page of splitPages([...this.parseOwnRefs(refs).values()]))
      removed += await this.removePage(page, cutoffMs);
    return removed;
  }

  /** Clock of the store, which sets the ages of payloads. @throws BroomwagonError UNAVAILABLE */
  abstract nowMs(): Promise<number>;

  /**
   * Removes payloads, complete or not, that have no owner and are old enough: the required age is between `olderThanMs`
   * and twice that time. One pass over all jobs in pages; several replicas may run it at the same time. Removed
   * payloads can be restored for a day. Of 1,000 payloads or more, none is removed if more than a tenth would be.
   * @throws BroomwagonError UNAVAILABLE
   */
  async sweepOrphans(
    olderThanMs: number,
    isOwned: PayloadOwnership,
    { pageSize = LIMITS.page, isUnbounded = false }: PayloadSweepOptions = {},
  ): Promise<PayloadSweep> {
    const nowMs = await this.nowMs();
    // The cutoff moves in steps, so that one pass finds most orphans, and each other pass few or none.
    const cutoffMs = olderThanMs === 0 ? nowMs : (Math.floor(nowMs / olderThanMs) - 1) * olderThanMs;
    const total = isUnbounded ? 0 : await this.countAll();
    const most = total < BOUNDED_FROM ? Infinity : total / 10;
    const sweep: PayloadSweep = { examined: 0, orphans: 0, removed: 0, isRefused: false };
    const orphans: PayloadName[] = [];
    const split = async (page: readonly PayloadName[]) => {
      const owned = await Promise.all(page.map((one) => isOwned(one, formatPayloadRef(this.driver, one))));
      return [page.filter((_, position) => owned[position]), page.filter((_, position) => !owned[position])] as const;
    };
    await this.eachOld(cutoffMs, pageSize, async (page) => {
      const [owned, others] = await split(page);
      if (owned.length > 0) await this.touch(owned);
      orphans.push(...others);
      sweep.examined += page.length;
      sweep.orphans = orphans.length;
      sweep.isRefused = orphans.length > most;
      return sweep.isRefused ? 'stop' : others.length;
    });
    if (sweep.isRefused) return sweep;
    for (const page of splitPages(orphans, pageSize)) {
      // A payload may have got an owner since the first check.
      const [, others] = await split(page);
      if (others.length > 0) sweep.removed += await this.removePage(others, cutoffMs, SWEPT_KEPT_MS);
    }
    await this.emptyTrash(nowMs);
    return sweep;
  }

  /** Number of payloads of all jobs, complete or not. @throws BroomwagonError UNAVAILABLE */
  abstract countAll(): Promise<number>;

  /** Notes that a deployment uses the store. @returns the other deployments. @throws BroomwagonError UNAVAILABLE */
  abstract usedBy(deployment: string): Promise<string[]>;

  /** Gives the store to one deployment: deletes the notes of all others. @throws BroomwagonError UNAVAILABLE */
  abstract adopt(deployment: string): Promise<void>;

  /** Removes all payloads of a job, and the job. @throws BroomwagonError UNAVAILABLE */
  abstract removeAll(of: PayloadJob): Promise<void>;

  /** Checks that the store takes payloads now. @throws BroomwagonError UNAVAILABLE or PAYLOAD_STORE_FULL */
  abstract checkWritable(): Promise<void>;

  /** Bytes that the payloads of a job take, and may take. @throws BroomwagonError UNAVAILABLE */
  abstract usage(of: PayloadJob): Promise<PayloadUsage>;

  abstract close(): Promise<void>;

  /** First part of the references of the store. */
  protected abstract readonly driver: PayloadDriver;

  /** Marks payloads as freed or not. @returns the bytes of each; -1 for a missing payload */
  protected abstract setFreed(page: readonly [string, PayloadName][], isFreed: boolean): Promise<number[]>;

  /**
   * Removes payloads.
   * @param cutoffMs payloads that were stored after this time stay
   * @param keptMs how long removed payloads can be restored; absent: not at all
   * @returns number of removed payloads
   */
  protected abstract removePage(page: readonly PayloadName[], cutoffMs?: number, keptMs?: number): Promise<number>;

  /** Reads all payloads that were stored, or last touched, up to a moment, page by page. */
  protected abstract eachOld(cutoffMs: number, pageSize: number, look: LookAtPage): Promise<void>;

  /** Notes that these payloads have owners now, so that the sweep examines them again only later. */
  protected abstract touch(page: readonly PayloadName[]): Promise<void>;

  /** Deletes payloads that were swept long ago; a store whose swept payloads expire has nothing to do. */
  protected async emptyTrash(_nowMs: number): Promise<void> {}

  /** References of this store, with their names. */
  private parseOwnRefs(refs: readonly string[]): Map<string, PayloadName> {
    const own = new Map<string, PayloadName>();
    for (const ref of refs) {
      try {
        own.set(ref, parsePayloadRef(this.driver, ref));
      } catch {
        // The reference is of another store, or of none.
      }
    }
    return own;
  }

  private async read(ref: string, index?: number): Promise<{ stat: PayloadStat; chunk?: Buffer }> {
    const found = await this.find(parsePayloadRef(this.driver, ref), index);
    if (found === undefined) throw new BroomwagonError('PAYLOAD_NOT_FOUND', `No payload ${ref}`);
    const { receivedChunks, chunk, ...stat } = found;
    if (receivedChunks >= stat.chunkCount) return { stat, chunk };
    const message = `Only ${receivedChunks} of ${stat.chunkCount} chunks of ${ref} are stored`;
    throw new BroomwagonError('PAYLOAD_INCOMPLETE', message);
  }

  /** @param index index of the requested chunk; absent for no chunk */
  protected abstract find(payload: PayloadName, index?: number): Promise<FoundPayload | undefined>;

  protected abstract writeAll(payload: PayloadName, chunks: Buffer[]): Promise<void>;

  /** Stores a page of {@link putPages}. A driver overrides it if several payloads cost less together. */
  protected putPage(page: readonly NewPayload[]): Promise<(string | Error)[]> {
    return Promise.all(page.map(({ payload, bytes }) => this.put(payload, bytes).catch((error: Error) => error)));
  }

  /** Stores a valid chunk. @returns the number of stored chunks of the payload */
  protected abstract writeChunk(payload: PayloadName, index: number, count: number, bytes: Buffer): Promise<number>;
}
