import { Type } from 'class-transformer';
import { IsBoolean, IsIn, IsInt, IsOptional, IsString, Max, MaxLength, Min, ValidateNested } from 'class-validator';
import type { SamplingParameters } from './generation';
import { IsAttempt, IsEpoch } from './epochs';
import {
  IsCorrelationId,
  IsId,
  type GroupId,
  type JobId,
  type RequestId,
  type RoundId,
  type ServerId,
  type WorkerId,
  type AttemptId,
  type Epoch,
  IsWorkerId,
} from './ids';
import { IsCounter, type Integer } from './integers';
import { LIMITS } from './limits';
import { MAX_REF_LENGTH, Segment } from './segment.dto';

/**
 * `request.claim`: takes pending requests; an empty answer after waitMs is not an error; POOL_PAUSED says why there is
 * none.
 */
export class ClaimRequest {
  /** Idempotency of this call. */
  @IsId() claimId!: string;
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
  /** At most this many. */
  @IsInt() @Min(1) @Max(LIMITS.claimsPerCall) max!: Integer;
  /**
   * Wait at most this long for a request, milliseconds.
   * @default 0
   */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.waitMs) waitMs?: Integer;
  /**
   * Only requests of this job, for one that cannot run those of others; it pays for them as for its turns. Default:
   * any.
   */
  @IsOptional() @IsId() job?: JobId;
}
/** One request to run. `attempt` is the fence of everything the worker says about it. */
export interface Claim {
  requestId: RequestId;
  attempt: AttemptId;
  job: JobId;
  roundId: RoundId;
  groupId: GroupId;
  /** Place of the sample in its group, from 0. */
  sampleIndex: Integer;
  /** Reference of the prompt: JSON of {@link Prompt}. */
  promptRef: string;
  /** Sampling parameters of the group. */
  sampling: SamplingParameters;
  /** Budget of the whole sample; what the segments hold is already used. */
  maxTokens: Integer;
  /**
   * Longest time the sample may generate over all its attempts, milliseconds; this one has what `generatedMs` leaves of
   * it, and then ends by `request.fail`, reason `timeout`.
   */
  timeoutMs?: Integer;
  /** How long the attempts before this one have generated, milliseconds; absent without a `timeoutMs`. */
  generatedMs?: Integer;
  /** Version of the weights of its round. */
  weightVersion: Integer;
  /** Tokens of earlier attempts, in order. */
  segments: Segment[];
  /** There are too many for this message, and `segments` is empty: read them with `request.segments`. */
  segmentsFollow?: true;
  /** Where it was moved to: to be named in its acquire, with its epoch. */
  boundServerId?: ServerId;
  /** Epoch of that server. */
  boundServerEpoch?: Epoch;
}
/** May hold fewer requests than asked for: it ends well below the size of a message. */
export interface ClaimReply {
  /** The requests; empty when there is none. */
  claims: Claim[];
}

/** `request.segments`: the segments of a request, in order, when they are too many for the message that names it. */
export class RequestSegmentsRequest {
  @IsCorrelationId() requestId!: RequestId;
  /** Of the page before. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
}
export interface RequestSegmentsReply {
  /** The page, in order. */
  segments: Segment[];
  /** There are more: send the same body with this cursor. */
  cursor?: Integer;
}

/** Of one attempt, milliseconds; beyond it, a clock that was set forward. */
const MAX_GENERATED_MS = 2 * LIMITS.timeoutMs;

class AttemptMessage {
  @IsCorrelationId() requestId!: RequestId;
  @IsAttempt() attempt!: AttemptId;
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
}

/** `request.checkpoint`: the attempt runs on this server; with a segment, its tokens so far are safe. */
export class CheckpointRequest extends AttemptMessage {
  /** How long the attempt has generated so far, milliseconds; for a sample with a `timeoutMs`. */
  @IsOptional() @IsInt() @Min(0) @Max(MAX_GENERATED_MS) generatedMs?: Integer;
  /** Where it runs; needed with the first one of an attempt that may be moved. */
  @IsOptional() @IsId() serverId?: ServerId;
  /** Tokens of the attempt so far. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
}
export interface CheckpointReply {
  /** `abort`: the attempt is to be ended with `request.fail`, reason `aborted`. */
  action: 'continue' | 'abort';
}

/** `request.complete`: the sample is finished. Its payload is stored before this is said. */
export class CompleteRequest extends AttemptMessage {
  /** Why generation ended: by itself (`stop`), or at the budget (`length`). */
  @IsIn(['stop', 'length']) finishReason!: 'stop' | 'length';
  /** The last segment; absent when the budget was used up before this attempt made a token. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
}
/** What became of the sample. */
export interface CompleteReply {
  /** `unfinished`: its group was cut meanwhile, and keeps the sample. `dropped`: its group needs it no more. */
  state: 'finished' | 'unfinished' | 'dropped';
  /** The group has all its samples, and a place in the round. */
  groupAccepted: boolean;
  /** The round has all groups it needs. */
  roundCompleted: boolean;
}

export const FAIL_REASONS = [
  'engine-error',
  'engine-rejected',
  /** The engine dropped the request by itself: its trainer had it drop all, or it ended the stream without a reason. */
  'engine-abort',
  'no-server',
  'payload',
  'aborted',
  'shutdown',
  'unclaimed',
  'payload-full',
  /** The sample has generated for `timeoutMs`. */
  'timeout',
] as const;
/**
 * Why an attempt ends: `engine-abort`: the engine dropped the request by itself. `timeout`: the sample has generated
 * for its `timeoutMs`. `payload-full`: the quota of the job has no room. The others are what they say.
 */
export type FailReason = (typeof FAIL_REASONS)[number];
/**
 * Why an attempt came back unfinished though nobody here had asked for that. `worker-lost`: its worker epoch is
 * expired.
 * `internal`: what its worker said of its end raised an error (INTERNAL); after some of them the request is lost.
 */
export type ReturnReason = FailReason | 'worker-lost' | 'internal';

/**
 * `request.fail`: the attempt ends without completing. Where the request goes is decided by what was
 * intended for it: cut -> unfinished; nothing intended -> pending again, or failed above the cap.
 * `payload-full`: the quota of the job has no room for the tokens; no more of its requests are claimed until it has.
 * `timeout`: the sample ends for good, and its group as `abortScope` of the round says.
 * Only the reasons `engine-error`, `engine-rejected` and, when not retryable, `payload` count as failures
 * (`maxFailures` of the policy); all others that nothing here has asked for are returns (`maxReturns`).
 */
export class FailRequest extends AttemptMessage {
  /** How long the attempt has generated, milliseconds; for a sample with a `timeoutMs`. */
  @IsOptional() @IsInt() @Min(0) @Max(MAX_GENERATED_MS) generatedMs?: Integer;
  /** Why the attempt ends. */
  @IsIn(FAIL_REASONS) reason!: FailReason;
  /** False: trying again cannot help (the engine refused the request itself). */
  @IsBoolean() retryable!: boolean;
  /** For people. */
  @IsOptional() @MaxLength(1_000) message?: string;
  /** Tokens made so far; kept. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
  /**
   * With the reason `payload`: a segment of the claim that the payload store does not have. Its tokens are made again.
   */
  @IsOptional() @IsString() @MaxLength(MAX_REF_LENGTH) missingRef?: string;
  /** Tokens this attempt made that could not be stored; those after the last checkpoint are counted as waste. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.maxTokens) lostTokens?: Integer;
}
export interface FailReply {
  /** State of the request now. */
  state: 'pending' | 'unfinished' | 'failed' | 'dropped';
}
