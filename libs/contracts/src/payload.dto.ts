import { IsBase64, IsOptional, IsString, MaxLength } from 'class-validator';
import { LIMITS } from './limits';
import { MAX_REF_LENGTH } from './segment.dto';
import type { WireError } from './errors';
import { IsCorrelationId, IsId, IsList, IsWithin } from './rules';
import type { GroupId, Integer, JobId, RequestId } from './scalars';

/**
 * `payload.put`: stores one chunk of at most 256 kB; the reply to the last chunk contains the reference. Safe to
 * repeat.
 */
export class PutPayloadRequest {
  /** The job that the payload belongs to. */
  @IsId() job!: JobId;
  /** The group that owns the payload, for a prompt. Exactly one of `groupId` and `requestId`. */
  @IsOptional() @IsId() groupId?: GroupId;
  /** The request that owns the payload, for generated tokens. */
  @IsOptional() @IsCorrelationId() requestId?: RequestId;
  /** Name among the payloads of the owner: `prompt`, or the attempt. */
  @IsId() name!: string;
  /** Index of this chunk, from 0. */
  @IsWithin(0, LIMITS.payloadChunks - 1) chunkIndex!: Integer;
  /** Chunks of the whole payload. */
  @IsWithin(1, LIMITS.payloadChunks) chunkCount!: Integer;
  /**
   * The chunk in base64. All chunks together are the JSON of a {@link Prompt}, or of a {@link SegmentPayload} for the
   * tokens of a segment. Services do not read this JSON.
   */
  @IsBase64() @MaxLength(Math.ceil(LIMITS.payloadChunkBytes / 3) * 4) data!: string;
}
export interface PutPayloadReply {
  /** Reference, when all chunks are stored. */
  ref?: string;
  /** Number of stored chunks. */
  receivedChunks: Integer;
}

/** `payload.get`: one chunk. */
export class GetPayloadRequest {
  /** Reference of the payload. */
  @IsString() @MaxLength(MAX_REF_LENGTH) ref!: string;
  /**
   * Index of the chunk, from 0.
   * @default 0
   */
  @IsOptional() @IsWithin(0, LIMITS.payloadChunks - 1) chunkIndex?: Integer;
}
export interface GetPayloadReply extends Pick<StatPayloadReply, 'bytes' | 'chunkCount'> {
  /** The chunk in base64. */
  data: string;
  /** Index of this chunk, from 0. */
  chunkIndex: Integer;
}

/** `payload.get-many`: the first chunks of several payloads. Each payload has a separate result. */
export class GetPayloadsRequest {
  /** References of the payloads. */
  @IsList(LIMITS.page, 1) @IsString({ each: true }) @MaxLength(MAX_REF_LENGTH, { each: true }) refs!: string[];
}
/** A payload that was not read. REPLY_FULL: read it with fewer others, or by `payload.get`. */
export interface UnreadPayload {
  error: WireError;
}
export interface GetPayloadsReply {
  /** Results in the order of the request. */
  payloads: (GetPayloadReply | UnreadPayload)[];
}

/** `payload.stat`: size of a payload. */
export class StatPayloadRequest {
  /** Reference of the payload. */
  @IsString() @MaxLength(MAX_REF_LENGTH) ref!: string;
}
export interface StatPayloadReply {
  /** Size of the whole payload, bytes. */
  bytes: Integer;
  /** Chunks of the whole payload. */
  chunkCount: Integer;
  /** Time of completion, milliseconds since 1970. */
  storedAtMs: Integer;
}
