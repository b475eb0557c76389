import { IsBase64, IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator';
import { IsCorrelationId, IsId, type GroupId, type JobId, type RequestId } from './ids';
import { LIMITS } from './limits';
import { MAX_REF_LENGTH } from './segment.dto';

/** `payload.put`: one chunk of at most 256 kB; the reply to the last one holds the reference. Safe to repeat. */
export class PutPayloadRequest {
  @IsId() job!: JobId;
  /** Its owner, which decides when it may be swept: the group of a prompt. Either this or `requestId`. */
  @IsOptional() @IsId() groupId?: GroupId;
  /** The request of the job that made these tokens. */
  @IsOptional() @IsCorrelationId() requestId?: RequestId;
  /** Tells payloads of one owner apart: `prompt`, or the attempt. */
  @IsId() name!: string;
  @IsInt() @Min(0) @Max(LIMITS.payloadChunks - 1) chunkIndex!: number;
  @IsInt() @Min(1) @Max(LIMITS.payloadChunks) chunkCount!: number;
  @IsBase64() @MaxLength(Math.ceil(LIMITS.payloadChunkBytes / 3) * 4) data!: string;
}
export interface PutPayloadReply {
  /** Set when all chunks are there. */
  ref?: string;
  receivedChunks: number;
}

/** `payload.get`: one chunk. */
export class GetPayloadRequest {
  @IsString() @MaxLength(MAX_REF_LENGTH) ref!: string;
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.payloadChunks - 1) chunkIndex?: number;
}
export interface GetPayloadReply {
  /** base64 */
  data: string;
  chunkIndex: number;
  chunkCount: number;
  bytes: number;
}

/** `payload.stat` */
export class StatPayloadRequest {
  @IsString() @MaxLength(MAX_REF_LENGTH) ref!: string;
}
export interface StatPayloadReply {
  bytes: number;
  chunkCount: number;
  storedAtMs: number;
}
