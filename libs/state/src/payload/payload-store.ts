import { BroomwagonError } from '@broomwagon/contracts';
import { checkChunk } from './chunks';
import { formatPayloadRef, parsePayloadRef, type PayloadDriver, type PayloadName } from './payload-ref';

/** What a store knows about a complete payload. */
export interface PayloadStat {
  bytes: number;
  chunkCount: number;
  storedAtMs: number;
}
/** One chunk of a complete payload. */
export interface PayloadChunk extends PayloadStat {
  data: Buffer;
  chunkIndex: number;
}
/** Answer to one chunk that was put. */
export interface PutChunkReply {
  /** Set when all chunks are there. */
  ref?: string;
  receivedChunks: number;
}
/** What one sweep did. */
export interface PayloadSweep {
  /** Payloads old enough to be asked about. */
  examined: number;
  /** Those whose owner is gone. */
  removed: number;
}
/** Whose quota payloads count to. */
export type PayloadJob = Pick<PayloadName, 'pool' | 'job'>;
/** Bytes of a job. */
export interface PayloadUsage {
  usedBytes: number;
  quotaBytes: number;
}
/** Says whether the owner of a payload still exists; asked only about payloads of some age. */
export type PayloadOwnership = (payload: Omit<PayloadName, 'name'>) => Promise<boolean>;

/**
 * Where prompts and tokens lie, by reference; queues and transitions never carry them. A payload is named by its pool,
 * its job, its owner (a groupId or requestId) and a name (`prompt`, or the attempt); putting the same name again
 * replaces it. Jobs of the same name in two pools share nothing.
 *
 * All bytes of a job count to its quota. Every driver passes `payload-store.conformance.ts`. This class is also the
 * injection token.
 */
export abstract class PayloadStore {
  /**
   * Stores a payload of any size up to 64 MiB, at once for every reader.
   * @returns its reference: at most 512 characters, each safe in a URL, naming driver, pool, job, owner and name
   * @throws BroomwagonError PAYLOAD_STORE_FULL (quota of the job), PAYLOAD_TOO_LARGE, VALIDATION_FAILED (a name),
   *   UNAVAILABLE
   */
  abstract put(payload: PayloadName, bytes: Buffer): Promise<string>;

  /**
   * Stores one chunk of at most 256 kB; in any order, safe to repeat. Another `count` than before begins anew.
   * Replacing a payload this way is not atomic for readers; {@link put} is.
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
   * @throws BroomwagonError VALIDATION_FAILED for one of no store or of another, PAYLOAD_FOREIGN
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
  abstract get(ref: string): Promise<Buffer>;

  /** One chunk. @throws BroomwagonError as {@link get}; PAYLOAD_NOT_FOUND also for an index that is not there */
  abstract getChunk(ref: string, index: number): Promise<PayloadChunk>;

  /** @throws BroomwagonError as {@link get} */
  abstract stat(ref: string): Promise<PayloadStat>;

  /** Removes payloads; those that are not there are skipped. Pages of 128. @returns how many there were */
  abstract remove(refs: readonly string[]): Promise<number>;

  /**
   * Removes payloads, complete or not, that were stored at least `olderThanMs` ago and whose owner is gone. One pass
   * over all jobs in pages; safe to run anywhere and at the same time.
   * @param pageSize payloads handled together, at most 128
   */
  abstract sweepOrphans(olderThanMs: number, isOwned: PayloadOwnership, pageSize?: number): Promise<PayloadSweep>;

  /** Removes all payloads of a job, and forgets it. @throws BroomwagonError UNAVAILABLE */
  abstract removeAll(of: PayloadJob): Promise<void>;

  /** What the payloads of a job take, and may take. @throws BroomwagonError UNAVAILABLE */
  abstract usage(of: PayloadJob): Promise<PayloadUsage>;

  /** Gives up connections. */
  abstract close(): Promise<void>;

  /** First part of its references. */
  protected abstract readonly driver: PayloadDriver;

  /** Stores a chunk that is as it should be. @returns how many of the payload are there now */
  protected abstract writeChunk(payload: PayloadName, index: number, count: number, bytes: Buffer): Promise<number>;
}
