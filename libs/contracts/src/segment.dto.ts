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
  /** The server that generated them. */
  @IsId() serverId!: ServerId;
  /** Epoch of that server. */
  @IsEpoch() serverEpoch!: Epoch;
  /** Weight version. */
  @IsCounter(0) weightVersion!: Integer;
  /** Number of tokens. */
  @IsWithin(0, LIMITS.maxTokens) tokenCount!: Integer;
  /** Reference of the payload with the tokens: JSON {@link SegmentPayload}. */
  @IsString() @MaxLength(MAX_REF_LENGTH) ref!: string;
  /** Set if the weights changed meanwhile (mode `keep`): the tokens are from `weightVersion` up to this version. */
  @IsOptional() @IsCounter(0) toWeightVersion?: Integer;
  /** Written by services with `toWeightVersion`: the version of a change in mode `keep` that may have met any token. */
  @IsOptional() @IsCounter(0) mixedWeightVersion?: Integer;
  /** `text` if the engine could resume only by text, not by token ids. */
  @IsOptional() @IsString() @MaxLength(16) resumedBy?: string;
}

/** The tokens of a sample. */
export interface SegmentList {
  /** References of the tokens of ended attempts, in order. */
  segments: Segment[];
  /** The segments do not fit this message, and `segments` is empty: read them with `request.segments`. */
  segmentsFollow?: true;
}

/** Tokens in a row, of a segment, that one server generated with one weight version. */
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
   * The rest of the text, with which a stop text may begin, if the attempt was cut there. The text of the next segment
   * begins with it, unless a stop text does.
   */
  heldText?: string;
  /** Log probability of each token, if requested; null where the engine returned none, for one because it was NaN. */
  logprobs?: (number | null)[];
  /**
   * 1 for each token that the model generated, 0 for each token that it read between two turns, such as the output of a
   * tool. Absent: the model generated all of them.
   */
  lossMask?: (0 | 1)[];
  /** The turns of an agent loop, if their servers or weight versions differ: their tokens in order. */
  parts?: SegmentPart[];
  /**
   * Stop reason of the last segment, if the engine returned one: the stop string or token, or an unknown finish reason.
   */
  stopReason?: string | number;
  /** Finish reason of the last segment as the engine named it: `stop`, `length`, `tool_calls`, `content_filter`. */
  engineFinishReason?: string;
  /** Further fields of the engine's response, unread: `routed_experts`, `tool_calls`. */
  engineFields?: Record<string, unknown>;
}
