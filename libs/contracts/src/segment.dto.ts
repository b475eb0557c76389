import { IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator';
import { IsAttempt, IsEpoch } from './epochs';
import { IsId, type ServerId, type AttemptId, type Epoch } from './ids';
import { IsCounter, type Integer } from './integers';
import { LIMITS } from './limits';

/** Longest payload reference, characters. */
export const MAX_REF_LENGTH = 2_048;

/** Tokens made by one attempt under one weight version. A sample is a list of segments. */
export class Segment {
  /** The attempt that made the tokens. */
  @IsAttempt() attempt!: AttemptId;
  /** The server they were made on. */
  @IsId() serverId!: ServerId;
  /** Epoch of that server. */
  @IsEpoch() serverEpoch!: Epoch;
  /** Version of the weights that made them. */
  @IsCounter(0) weightVersion!: Integer;
  /** How many tokens. */
  @IsInt() @Min(0) @Max(LIMITS.maxTokens) tokenCount!: Integer;
  /** Reference of the payload with the tokens: JSON {@link SegmentPayload}. */
  @IsString() @MaxLength(MAX_REF_LENGTH) ref!: string;
  /** Set when the weights changed under it (mode `keep`): tokens are of `weightVersion` to this one. */
  @IsOptional() @IsCounter(0) toWeightVersion?: Integer;
  /** `text` when the engine could only resume by text, not by token ids. */
  @IsOptional() @IsString() @MaxLength(16) resumedBy?: string;
}

/** What stands behind {@link Segment.ref}. */
export interface SegmentPayload {
  /** The tokens, when the engine answers with token ids. */
  tokenIds?: Integer[];
  /** Their text. */
  text?: string;
  /** Log probability of each token, when it was asked for. */
  logprobs?: number[];
  /** Of the last segment, when the engine gave one: the stop string or token, or its finish reason if none of ours. */
  stopReason?: string | number;
  /** Fields of the engine's answer that are none of the above, unread: `routed_experts`, `tool_calls`. */
  engineFields?: Record<string, unknown>;
}
