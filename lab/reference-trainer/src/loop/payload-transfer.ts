import { createHash } from 'node:crypto';
import { BroomwagonError, LIMITS, type JobId, type SegmentPayload } from '@broomwagon/contracts';
import type { Operations } from './operations';

/** Payloads over NATS, in chunks: for a trainer that has no other way to the store. */
export class PayloadTransfer {
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

  /** Fetches the tokens of one segment. */
  async getSegment(ref: string): Promise<SegmentPayload> {
    const chunks: Buffer[] = [];
    for (let chunkIndex = 0, chunkCount = 1; chunkIndex < chunkCount; chunkIndex += 1) {
      const reply = await this.operations.call('payload.get', { ref, chunkIndex });
      chunkCount = reply.chunkCount;
      chunks.push(Buffer.from(reply.data, 'base64'));
    }
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as SegmentPayload;
  }
}
