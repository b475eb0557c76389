import { IsOptional, IsString, MaxLength } from 'class-validator';
import { LIMITS } from './limits';
import { IsAttempt, IsCounter, IsEpoch, IsId, IsWithin } from './rules';
import type { AttemptId, Epoch, Integer, ServerId } from './scalars';

/** Longest payload reference, characters. */
export const MAX_REF_LENGTH = 2_048;

/** Tokens that one attempt generated with one weight version. A sample is a list of segments. */
export class Segment {
  /** The attempt that generated the tokens. */
  @IsAttempt() attempt!: AttemptId;
  /** The server that generated the tokens. */
  @IsId() serverId!: ServerId;
  /** Epoch of the server. */
  @IsEpoch() serverEpoch!: Epoch;
  /** Weight version. */
  @IsCounter(0) weightVersion!: Integer;
  /** Number of tokens. */
  @IsWithin(0, LIMITS.maxTokens) tokenCount!: Integer;
  /** Reference of the payload with the tokens: JSON {@link SegmentPayload}. */
  @IsString() @MaxLength(MAX_REF_LENGTH) ref!: string;
  /**
   * Last weight version of the tokens, if the weights changed during the attempt (mode `keep`). `weightVersion` is the
   * first version.
   */
  @IsOptional() @IsCounter(0) toWeightVersion?: Integer;
  /** Set by services, with `toWeightVersion`: version of a change in mode `keep` that may have affected any token. */
  @IsOptional() @IsCounter(0) mixedWeightVersion?: Integer;
  /** `text` if the engine could resume only by text, not by token ids. */
  @IsOptional() @IsString() @MaxLength(16) resumedBy?: string;
}

/** The tokens of a sample. */
export interface SegmentList {
  /** Segments of ended attempts, in order. */
  segments: Segment[];
  /** The segments do not fit this message, so `segments` is empty. Read the segments with `request.segments`. */
  segmentsFollow?: true;
}

/** Consecutive tokens of a segment that one server generated with one weight version. */
export interface SegmentPart {
  /** Number of tokens. */
  tokenCount: Integer;
  serverId: ServerId;
  serverEpoch: Epoch;
  /** Weight version of the server when the turn began. */
  weightVersion: Integer;
}

/** Contents of the payload of {@link Segment.ref}. */
export interface SegmentPayload {
  /** The token ids, if the engine returns them. */
  tokenIds?: Integer[];
  /** The text of the tokens. */
  text?: string;
  /**
   * End of the text that may be the beginning of a stop text, if the attempt was cut there. The text of the next
   * segment begins with this text, unless the stop text is complete.
   */
  heldText?: string;
  /** Log probability of each token, if requested; null where the engine returned none or NaN. */
  logprobs?: (number | null)[];
  /**
   * 1 for each token that the model generated, 0 for each token between two turns, such as the output of a tool.
   * Absent: the model generated all tokens.
   */
  lossMask?: (0 | 1)[];
  /** Parts of the segment in order, if the turns of an agent loop ran on different servers or weight versions. */
  parts?: SegmentPart[];
  /** Stop string or stop token of the last segment, or an unknown finish reason; absent if the engine returned none. */
  stopReason?: string | number;
  /** Finish reason of the last segment in the words of the engine, e.g. `stop`, `length`, `tool_calls`. */
  engineFinishReason?: string;
  /** Further fields of the response of the engine, passed on unread, e.g. `routed_experts`, `tool_calls`. */
  engineFields?: Record<string, unknown>;
}
