import { IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator';
import { IsAttempt, IsEpoch } from './epochs';
import { IsId, type ServerId, type AttemptId, type Epoch } from './ids';
import { IsCounter } from './integers';
import { LIMITS } from './limits';

/** Longest payload reference, characters. */
export const MAX_REF_LENGTH = 2_048;

/** Tokens made by one attempt under one weight version. A sample is a list of segments. */
export class Segment {
  @IsAttempt() attempt!: AttemptId;
  @IsId() serverId!: ServerId;
  @IsEpoch() serverEpoch!: Epoch;
  @IsCounter(0) weightVersion!: number;
  @IsInt() @Min(0) @Max(LIMITS.maxTokens) tokenCount!: number;
  /** Reference of the payload with the tokens: JSON {@link SegmentPayload}. */
  @IsString() @MaxLength(MAX_REF_LENGTH) ref!: string;
  /** Set when the weights changed under it (mode `keep`): tokens are of `weightVersion` to this one. */
  @IsOptional() @IsCounter(0) toWeightVersion?: number;
  /** `text` when the engine could only resume by text, not by token ids. */
  @IsOptional() @IsString() @MaxLength(16) resumedBy?: string;
}

/** What stands behind {@link Segment.ref}. */
export interface SegmentPayload {
  tokenIds?: number[];
  text?: string;
  logprobs?: number[];
  /** Of the last segment, when the engine gave one: the stop string or token, or its finish reason if none of ours. */
  stopReason?: string | number;
  /** Fields of the engine's answer that are none of the above, unread: `routed_experts`, `tool_calls`. */
  engineFields?: Record<string, unknown>;
}
