import { type NumberedPageReply, WorkerRequest } from './common.dto';
import { Type } from 'class-transformer';
import { IsBoolean, IsIn, IsOptional, IsString, MaxLength, ValidateNested } from 'class-validator';
import type { SamplingParameters } from './generation';
import type { WireError } from './errors';
import { LIMITS } from './limits';
import { MAX_REF_LENGTH, Segment, type SegmentList } from './segment.dto';
import { IsAttempt, IsCorrelationId, IsCounter, IsEpoch, IsId, IsListOf, IsName, IsWithin, IsWorkerId } from './rules';
import type { AttemptId, Epoch, GroupId, Integer, JobId, RequestId, RoundId, ServerId, WorkerId } from './scalars';

/** `request.claim`: takes pending requests. An empty reply after `waitMs` is not an error. Errors: POOL_PAUSED. */
export class ClaimRequest extends WorkerRequest {
  /** Id of the claim, for idempotency. */
  @IsId() claimId!: string;
  /** Maximum number of requests. */
  @IsWithin(1, LIMITS.claimsPerCall) max!: Integer;
  /**
   * Wait at most this long for a request, milliseconds.
   * @default 0
   */
  @IsOptional() @IsWithin(0, LIMITS.waitMs) waitMs?: Integer;
  /** Claims only requests of this job, for a worker that cannot run other jobs. Default: any job. */
  @IsOptional() @IsId() job?: JobId;
  /**
   * Kind of the worker. A worker with a kind gets only requests of jobs with the same `workerKind` of `round.open`.
   * Default: a built-in worker, which gets requests of jobs without a kind.
   */
  @IsOptional() @IsName() workerKind?: string;
}
/** One request to run. Every later message about the request has its `attempt`. */
export interface Claim extends SegmentList {
  requestId: RequestId;
  attempt: AttemptId;
  job: JobId;
  roundId: RoundId;
  groupId: GroupId;
  /** Index of the sample in its group, from 0. */
  sampleIndex: Integer;
  /** Reference of the prompt: JSON of {@link Prompt}. */
  promptRef: string;
  /** Sampling parameters of the group. */
  sampling: SamplingParameters;
  /** Token budget of the whole sample, including the tokens of the segments. */
  maxTokens: Integer;
  /**
   * Maximum generation time of the sample over all attempts, milliseconds; `generatedMs` is the used part. When the
   * time is over, end the attempt with `request.fail`, reason `timeout`.
   */
  timeoutMs?: Integer;
  /** Generation time of earlier attempts, milliseconds; absent without `timeoutMs`. */
  generatedMs?: Integer;
  /** Weight version of the round. */
  weightVersion: Integer;
  /** Target of a move. Send `boundServerId` and `boundServerEpoch` with `lb.acquire`. */
  boundServerId?: ServerId;
  /** Epoch of the server `boundServerId`. */
  boundServerEpoch?: Epoch;
  /** Number of consecutive attempts, without a new token, that an engine failed or did not serve. */
  setbacks?: Integer;
  /** Servers of the attempts of `setbacks`, latest last, for `lb.acquire`. */
  avoidServers?: ServerId[];
  /** Priority of the round, if any, for `lb.acquire`. */
  priority?: Integer;
  /** W3C trace context of the `round.open` of the round; absent without a trace. Send this field to the engine. */
  traceparent?: string;
}
/** Reply of `request.claim`. A reply may have fewer requests than `max`, because its size is limited. */
export interface ClaimReply {
  /** The requests; empty if there are none. */
  claims: Claim[];
}

/** `request.segments`: one page of the segments of a request, for segments that do not fit a claim or result. */
export class RequestSegmentsRequest {
  @IsCorrelationId() requestId!: RequestId;
  /** Cursor of the previous page. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
  /** Maximum segments of the page; absent: as many as fit a message. */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
export interface RequestSegmentsReply extends NumberedPageReply {
  /** The segments, in order. */
  segments: Segment[];
}

/** Maximum generation time of one attempt, milliseconds. A larger value shows that a clock was set forward. */
const MAX_GENERATED_MS = 2 * LIMITS.timeoutMs;

/** Server and times of one attempt, as measured by the worker. Times are milliseconds since the claim. */
export class AttemptRun {
  /** The server of the lease. */
  @IsId() serverId!: ServerId;
  /** Weight version of the server at the grant of the lease. */
  @IsCounter(0) weightVersion!: Integer;
  /** Time until the grant of the lease: the wait for a server. */
  @IsCounter(0) leasedMs!: Integer;
  /** Time until the first token; absent if there was none. */
  @IsOptional() @IsCounter(0) firstTokenMs?: Integer;
  /** Time until the end of the generation. */
  @IsCounter(0) endedMs!: Integer;
}

class AttemptMessage extends WorkerRequest {
  @IsCorrelationId() requestId!: RequestId;
  @IsAttempt() attempt!: AttemptId;
}

class SaveFields {
  @IsCorrelationId() requestId!: RequestId;
  @IsAttempt() attempt!: AttemptId;
  /** Generation time of the attempt so far, milliseconds; for a sample with `timeoutMs`. */
  @IsOptional() @IsWithin(0, MAX_GENERATED_MS) generatedMs?: Integer;
  /** The server on which the attempt runs; required in the first call of an attempt that may be moved. */
  @IsOptional() @IsId() serverId?: ServerId;
  /** True if the engine has sent no token for some seconds: the request waits in the engine, or was preempted. */
  @IsOptional() @IsBoolean() waiting?: boolean;
  /**
   * Times of the attempt so far. An attempt that was bound to its server sends this field once, with its first tokens.
   */
  @IsOptional() @ValidateNested() @Type(() => AttemptRun) run?: AttemptRun;
}

/** `request.save`: reports the server on which the attempt runs. A call with a segment is a partial save. */
export class SaveRequest extends SaveFields {
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
  /** Tokens of the attempt so far. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
}
export interface SaveReply {
  /** `abort`: end the attempt with `request.fail`, reason `aborted`. */
  action: 'continue' | 'abort';
}

/** One save of `request.save-many`. */
export class SaveItem extends SaveFields {
  /** Tokens of the attempt after its first `savedTokens` tokens. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
  /**
   * Number of tokens that earlier saves of the attempt have. If the partial save has another number, the segment is not
   * taken: continue after the number of the reply, or with 0 and all tokens, which replace what is saved.
   * @default 0
   */
  @IsOptional() @IsWithin(0, LIMITS.maxTokens) savedTokens?: Integer;
}
/** `request.save-many`: `request.save` for several attempts of a worker. Each save has a separate result. */
export class SaveManyRequest extends WorkerRequest {
  /** The saves, each of a different attempt. */
  @IsListOf(() => SaveItem, LIMITS.page, 1) saves!: SaveItem[];
}
/** Result of one save. */
export interface SaveResult extends SaveReply {
  /** Number of tokens of the attempt after which its next segment begins. */
  savedTokens: Integer;
}
/** A refused save, which has changed nothing. */
export interface RefusedSave {
  error: WireError;
}
export interface SaveManyReply {
  /** Results in the order of the request. */
  results: (SaveResult | RefusedSave)[];
}

/** Longest finish reason of an engine, characters. */
export const MAX_FINISH_REASON_LENGTH = 64;

/** One sample of `request.complete-many`. */
export class CompleteItem {
  @IsCorrelationId() requestId!: RequestId;
  @IsAttempt() attempt!: AttemptId;
  /** Why the response ended: `stop` (the model ended it) or `length` (the budget was used up). */
  @IsIn(['stop', 'length']) finishReason!: 'stop' | 'length';
  /** Finish reason in the words of the engine, e.g. `tool_calls`; absent if the engine named none. */
  @IsOptional() @IsString() @MaxLength(MAX_FINISH_REASON_LENGTH) engineFinishReason?: string;
  /** The last segment; absent if this attempt had no budget left for a token. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
  /** Server and times of the attempt, for the timeline of the round. */
  @IsOptional() @ValidateNested() @Type(() => AttemptRun) run?: AttemptRun;
}

/** `request.complete`: reports a finished sample. Store the payload of the sample before this call. */
export class CompleteRequest extends CompleteItem {
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
}
/** State of the sample. */
export interface CompleteReply {
  /**
   * State of the sample. `unfinished`: the group was cut meanwhile and keeps the sample. `dropped`: the group no longer
   * needs the sample.
   */
  state: 'finished' | 'unfinished' | 'dropped';
  /** True if the group has all its samples and a place in the round. */
  groupAccepted: boolean;
  /** True if the round has all the groups that it needs. */
  roundCompleted: boolean;
}

/** `request.complete-many`: `request.complete` for several attempts of a worker. Each has a separate result. */
export class CompleteManyRequest extends WorkerRequest {
  /** The finished samples, each of a different attempt. */
  @IsListOf(() => CompleteItem, LIMITS.page, 1) completes!: CompleteItem[];
}
/** A refused report, which has changed nothing. */
export interface RefusedComplete {
  error: WireError;
}
export interface CompleteManyReply {
  /** Results in the order of the request. */
  results: (CompleteReply | RefusedComplete)[];
}

export const FAIL_REASONS = [
  'engine-error',
  'engine-rejected',
  'engine-abort',
  'no-server',
  'payload',
  'aborted',
  'shutdown',
  'unclaimed',
  'payload-full',
  'timeout',
] as const;
/**
 * Why an attempt ends. `engine-abort`: the engine ended the request without a command of Broomwagon, or ended the
 * stream with `[DONE]` and without a finish reason. `engine-rejected`: the engine refused the request; if retryable,
 * the answer of the engine does not fit its dialect. `timeout`: the generation time of the sample has reached
 * `timeoutMs`. `payload-full`: the payload quota of the job has no room.
 */
export type FailReason = (typeof FAIL_REASONS)[number];
/**
 * Why an attempt returned unfinished without a command. `worker-lost`: the worker epoch has expired. `internal`: the
 * end of the attempt raised an error (INTERNAL); at the fifth error the request counts as lost.
 */
export type ReturnReason = FailReason | 'worker-lost' | 'internal';

/**
 * `request.fail`: ends the attempt without a finished sample. The request becomes `unfinished` after a cut, otherwise
 * `pending`, or `failed` beyond a limit.
 *
 * The reasons `engine-error`, `engine-rejected` and, if not retryable, `payload` count as failures (limit:
 * `maxFailures` of the policy). Each start of a server (`run.serverId`) counts once, a new token resets the count, and
 * nothing counts while most servers fail other prompts too. A second retryable `engine-rejected` of one start of a
 * server fails the request, unless another server has sent none.
 *
 * All other reasons without a command count as returns (limit: `maxReturns`). After `payload-full`, no request of the
 * job is claimed until the payload quota has room. After `timeout`, the sample ends for good, and the group ends
 * according to `abortScope` of the round. `no-server` includes an engine that could not serve now (429, 503, no
 * connection).
 */
export class FailRequest extends AttemptMessage {
  /** Generation time of the attempt, milliseconds; for a sample with `timeoutMs`. */
  @IsOptional() @IsWithin(0, MAX_GENERATED_MS) generatedMs?: Integer;
  /** Why the attempt ends. */
  @IsIn(FAIL_REASONS) reason!: FailReason;
  /** False if a retry cannot help, for example because the engine refused the request. */
  @IsBoolean() retryable!: boolean;
  /** Text about the failure, for people. */
  @IsOptional() @MaxLength(1_000) message?: string;
  /** Tokens generated so far, which are kept. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
  /** With the reason `payload`: reference of a missing segment. Its tokens are generated again. */
  @IsOptional() @IsString() @MaxLength(MAX_REF_LENGTH) missingRef?: string;
  /**
   * Tokens of this attempt, if not all of them are in `segment`: they could not be stored, or the engine had generated
   * tokens that it did not send (an estimate). The tokens beyond `segment` and the last partial save count as waste.
   */
  @IsOptional() @IsWithin(0, LIMITS.maxTokens) lostTokens?: Integer;
  /** Server and times of the attempt, for the timeline of the round; absent if the attempt had no server. */
  @IsOptional() @ValidateNested() @Type(() => AttemptRun) run?: AttemptRun;
}
export interface FailReply {
  /** State of the request now. */
  state: 'pending' | 'unfinished' | 'failed' | 'dropped';
}
