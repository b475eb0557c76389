import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  BroomwagonError,
  GetPayloadRequest,
  patternOf,
  PutPayloadRequest,
  StatPayloadRequest,
  type GetPayloadReply,
  type PutPayloadReply,
  type StatPayloadReply,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { PayloadStore } from '@broomwagon/state';

/** Payloads of the pool of the subject in chunks, for those who have NATS only. Bytes travel as base64. */
@Controller()
export class PayloadController {
  constructor(private readonly payloads: PayloadStore) {}

  @MessagePattern(patternOf('payload.put'))
  put(
    @Payload(new ContractPipe(PutPayloadRequest)) request: PutPayloadRequest,
    @Ctx() { pool }: MessageContext,
  ): Promise<PutPayloadReply> {
    const { job, name, chunkIndex, chunkCount, data } = request;
    const owner = ownerOf(request);
    return this.payloads.putChunk({ pool, job, owner, name }, chunkIndex, chunkCount, Buffer.from(data, 'base64'));
  }

  @MessagePattern(patternOf('payload.get'))
  async get(
    @Payload(new ContractPipe(GetPayloadRequest)) request: GetPayloadRequest,
    @Ctx() { pool }: MessageContext,
  ): Promise<GetPayloadReply> {
    this.payloads.requireRef(request.ref, { pool });
    const { data, chunkIndex, chunkCount, bytes } = await this.payloads.getChunk(request.ref, request.chunkIndex ?? 0);
    return { data: data.toString('base64'), chunkIndex, chunkCount, bytes };
  }

  @MessagePattern(patternOf('payload.stat'))
  async stat(
    @Payload(new ContractPipe(StatPayloadRequest)) request: StatPayloadRequest,
    @Ctx() { pool }: MessageContext,
  ): Promise<StatPayloadReply> {
    this.payloads.requireRef(request.ref, { pool });
    return this.payloads.stat(request.ref);
  }
}

/** @throws BroomwagonError VALIDATION_FAILED: not one owner, or a request of another job */
function ownerOf({ job, groupId, requestId }: PutPayloadRequest): string {
  if (requestId === undefined && groupId !== undefined) return groupId;
  if (requestId === undefined || groupId !== undefined) {
    throw new BroomwagonError('VALIDATION_FAILED', 'exactly one of groupId and requestId must be given', {
      field: 'requestId',
    });
  }
  if (!requestId.startsWith(`${job}/`)) {
    const message = `requestId: ${requestId} is no request of the job ${job}`;
    throw new BroomwagonError('VALIDATION_FAILED', message, { field: 'requestId' });
  }
  return requestId;
}
