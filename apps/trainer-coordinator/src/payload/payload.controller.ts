import { Controller } from '@nestjs/common';
import {
  BroomwagonError,
  ERROR_CODES,
  GetPayloadRequest,
  type GetPayloadReply,
  type GetPayloadsReply,
  GetPayloadsRequest,
  invalidField,
  isBroomwagonError,
  LIMITS,
  PutPayloadRequest,
  StatPayloadRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { type PayloadChunk, PayloadStore } from '@broomwagon/state';

/** Payloads that are read at the same time for one call. */
const PAGE = 16;
/** Bytes of the chunks in one reply, as base64: half of a message, because errors need the rest at most. */
const REPLY_BYTES = LIMITS.bodyBytes / 2;

/** The operations `payload.*`: payloads in chunks of base64, for callers that reach only NATS. */
@Controller()
export class PayloadController {
  constructor(private readonly payloads: PayloadStore) {}

  @Operation('payload.put')
  async put(body: PutPayloadRequest, { pool }: MessageContext) {
    const { job, name, chunkIndex, chunkCount, data } = body;
    const payload = { pool, job, owner: parseOwner(body), name };
    return this.payloads.putChunk(payload, chunkIndex, chunkCount, Buffer.from(data, 'base64'));
  }

  @Operation('payload.get')
  async get({ ref, chunkIndex = 0 }: GetPayloadRequest, { pool }: MessageContext) {
    this.payloads.requireRef(ref, { pool });
    return toReply(await this.payloads.getChunk(ref, chunkIndex));
  }

  /** Payloads without room in the reply are not read. */
  @Operation('payload.get-many')
  async getMany({ refs }: GetPayloadsRequest, { pool }: MessageContext): Promise<GetPayloadsReply> {
    for (const [index, ref] of refs.entries()) this.payloads.requireRef(ref, { pool }, `refs.${index}`);
    const payloads: GetPayloadsReply['payloads'] = [];
    let leftBytes = REPLY_BYTES;
    for (let start = 0; start < refs.length; start += PAGE) {
      const page = refs.slice(start, start + PAGE);
      const found = await Promise.all(page.map((ref) => (leftBytes > 0 ? this.readFirst(ref) : NO_ROOM)));
      for (const one of found) {
        leftBytes -= 'error' in one ? 0 : one.data.length;
        payloads.push('error' in one || leftBytes >= 0 ? one : NO_ROOM);
      }
    }
    return { payloads };
  }

  private async readFirst(ref: string): Promise<GetPayloadsReply['payloads'][number]> {
    try {
      return toReply(await this.payloads.getChunk(ref, 0));
    } catch (error) {
      if (!isBroomwagonError(error)) throw error;
      return { error: error.toWire() };
    }
  }

  @Operation('payload.stat')
  async stat({ ref }: StatPayloadRequest, { pool }: MessageContext) {
    this.payloads.requireRef(ref, { pool });
    return this.payloads.stat(ref);
  }
}

const NO_ROOM = { error: new BroomwagonError('REPLY_FULL', ERROR_CODES.REPLY_FULL.about).toWire() };

function toReply({ data, ...chunk }: PayloadChunk): GetPayloadReply {
  return { data: data.toString('base64'), ...chunk };
}

/** @throws BroomwagonError VALIDATION_FAILED: not exactly one owner, or a request of another job */
function parseOwner({ job, groupId, requestId }: PutPayloadRequest): string {
  if (requestId === undefined && groupId !== undefined) return groupId;
  if (requestId === undefined || groupId !== undefined) {
    throw invalidField('requestId', 'exactly one of groupId and requestId is required');
  }
  if (!requestId.startsWith(`${job}/`)) {
    throw invalidField('requestId', `${requestId} is no request of the job ${job}`);
  }
  return requestId;
}
