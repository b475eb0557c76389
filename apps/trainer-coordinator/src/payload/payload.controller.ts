import { Controller } from '@nestjs/common';
import { invalidField, GetPayloadRequest, PutPayloadRequest, StatPayloadRequest } from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { PayloadStore } from '@broomwagon/state';

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
    const { data, ...chunk } = await this.payloads.getChunk(ref, chunkIndex);
    return { data: data.toString('base64'), ...chunk };
  }

  @Operation('payload.stat')
  async stat({ ref }: StatPayloadRequest, { pool }: MessageContext) {
    this.payloads.requireRef(ref, { pool });
    return this.payloads.stat(ref);
  }
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
