import { createHash } from 'node:crypto';
import { BroomwagonError, LIMITS, type GetPayloadReply, type JobId, type SegmentPayload } from '@broomwagon/contracts';
import type { Operations } from './operations';

/** Time for one call for several payloads, milliseconds. */
const TOGETHER_MS = 5_000;
/** Time for which payloads are read one by one after such a call has not given all of them, milliseconds. */
const SINGLE_MS = 10_000;

interface Read {
  ref: string;
  resolve(payload: SegmentPayload | Promise<SegmentPayload>): void;
  reject(error: unknown): void;
}

/** Payloads over NATS, in chunks: for a trainer that has no other way to the store. */
export class PayloadTransfer {
  private waiting: Read[] = [];
  private singleUntilMs = -Infinity;

  constructor(
    private readonly operations: Operations,
    private readonly job: JobId,
  ) {}

  /**
   * Stores a JSON value in chunks of at most 256 kB and returns its reference. Safe to repeat.
   * @param kind first part of the name of the payload; a hash of the contents follows, as a payload never changes under
   * its name
   */
  async put(groupId: string, kind: string, value: unknown): Promise<string> {
    const bytes = Buffer.from(JSON.stringify(value));
    const name = `${kind}.${createHash('sha256').update(bytes).digest('hex').slice(0, 32)}`;
    const chunkCount = Math.max(1, Math.ceil(bytes.length / LIMITS.payloadChunkBytes));
    if (chunkCount > LIMITS.payloadChunks) {
      throw new BroomwagonError('PAYLOAD_TOO_LARGE', `The payload of ${groupId} has ${bytes.length} bytes`);
    }
    let ref: string | undefined;
    for (let chunkIndex = 0; chunkIndex < chunkCount; chunkIndex += 1) {
      const start = chunkIndex * LIMITS.payloadChunkBytes;
      const data = bytes.subarray(start, start + LIMITS.payloadChunkBytes).toString('base64');
      const chunk = { job: this.job, groupId, name, chunkIndex, chunkCount, data };
      ref = (await this.operations.call('payload.put', chunk)).ref ?? ref;
    }
    if (ref === undefined) {
      const message = `All chunks of the payload of ${groupId} were sent, but it is not complete`;
      throw new BroomwagonError('PAYLOAD_INCOMPLETE', message);
    }
    return ref;
  }

  /** Fetches the tokens of one segment. Segments of one turn of the event loop are fetched together. */
  getSegment(ref: string): Promise<SegmentPayload> {
    if (performance.now() < this.singleUntilMs) return this.readAlone(ref);
    return new Promise((resolve, reject) => {
      if (this.waiting.push({ ref, resolve, reject }) === 1) setImmediate(() => this.readWaiting());
    });
  }

  private readWaiting(): void {
    const all = this.waiting.splice(0);
    for (let start = 0; start < all.length; start += LIMITS.page)
      void this.readPage(all.slice(start, start + LIMITS.page));
  }

  /** Reads a page of payloads, and settles each read: the method never throws. */
  private async readPage(reads: readonly Read[]): Promise<void> {
    if (reads.length === 1) return reads[0]!.resolve(this.readAlone(reads[0]!.ref));
    try {
      const refs = reads.map(({ ref }) => ref);
      const { payloads } = await this.operations.call('payload.get-many', { refs }, TOGETHER_MS);
      for (const [index, { ref, resolve, reject }] of reads.entries()) {
        const one = payloads[index]!;
        if (!('error' in one)) resolve(this.readAlone(ref, one));
        else if (!one.error.retryable) reject(BroomwagonError.fromWire(one.error));
        else {
          // Large payloads have no room beside each other.
          this.singleUntilMs = performance.now() + SINGLE_MS;
          resolve(this.readAlone(ref));
        }
      }
    } catch {
      // A coordinator of the version before does not know the call.
      this.singleUntilMs = performance.now() + SINGLE_MS;
      for (const { ref, resolve } of reads) resolve(this.readAlone(ref));
    }
  }

  /** @param first the first chunk, if it was read already */
  private async readAlone(ref: string, first?: GetPayloadReply): Promise<SegmentPayload> {
    const chunks: Buffer[] = [];
    for (let chunkIndex = 0, chunkCount = 1; chunkIndex < chunkCount; chunkIndex += 1) {
      const isRead = chunkIndex === 0 && first !== undefined;
      const reply = isRead ? first : await this.operations.call('payload.get', { ref, chunkIndex });
      chunkCount = reply.chunkCount;
      chunks.push(Buffer.from(reply.data, 'base64'));
    }
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as SegmentPayload;
  }
}
