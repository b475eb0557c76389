import { IsBase64, IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator';
import { IsCorrelationId, IsId, type GroupId, type JobId, type RequestId } from './ids';
import { LIMITS } from './limits';
import { MAX_REF_LENGTH } from './segment.dto';
import type { Integer } from './integers';

/** `payload.put`: one chunk of at most 256 kB; the reply to the last one holds the reference. Safe to repeat. */
export class PutPayloadRequest {
  /** The job that the payload belongs to. */
  @IsId() job!: JobId;
  /** Its owner, which decides when it may be swept: the group of a prompt. Either this or `requestId`. */
  @IsOptional() @IsId() groupId?: GroupId;
  /** The request of the job that made these tokens. */
  @IsOptional() @IsCorrelationId() requestId?: RequestId;
  /** Tells payloads of one owner apart: `prompt`, or the attempt. */
  @IsId() name!: string;
  /** Place of this chunk, from 0. */
  @IsInt() @Min(0) @Max(LIMITS.payloadChunks - 1) chunkIndex!: Integer;
  /** Chunks of the whole payload. */
  @IsInt() @Min(1) @Max(LIMITS.payloadChunks) chunkCount!: Integer;
  /**
   * The chunk, base64. Services pass payloads on unread; all chunks together are what is read at the other end: JSON
   * of {@link Prompt} for a prompt, of {@link SegmentPayload} for the tokens of a segment.
   */
  @IsBase64() @MaxLength(Math.ceil(LIMITS.payloadChunkBytes / 3) * 4) data!: string;
}
export interface PutPayloadReply {
  /** Set when all chunks are there. */
  ref?: string;
  /** Different chunks that are there. */
  receivedChunks: Integer;
}

/** `payload.get`: one chunk. */
export class GetPayloadRequest {
  /** Reference of the payload. */
  @IsString() @MaxLength(MAX_REF_LENGTH) ref!: string;
  /**
   * Which chunk, from 0.
   * @default 0
   */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.payloadChunks - 1) chunkIndex?: Integer;
}
export interface GetPayloadReply {
  /** base64 */
  data: string;
  /** Place of this chunk, from 0. */
  chunkIndex: Integer;
  /** Chunks of the whole payload. */
  chunkCount: Integer;
  /** Size of the whole payload, bytes. */
  bytes: Integer;
}

/** `payload.stat` */
export class StatPayloadRequest {
  /** Reference of the payload. */
  @IsString() @MaxLength(MAX_REF_LENGTH) ref!: string;
}
export interface StatPayloadReply {
  /** Size of the whole payload, bytes. */
  bytes: Integer;
  /** Chunks of the whole payload. */
  chunkCount: Integer;
  /** When it was complete, milliseconds since 1970. */
  storedAtMs: Integer;
}
