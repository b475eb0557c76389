import { type NumberedPageReply, WorkerRequest } from './common.dto';
import { Type } from 'class-transformer';
import { IsBoolean, IsIn, IsOptional, IsString, MaxLength, ValidateNested } from 'class-validator';
import type { SamplingParameters } from './generation';
import { LIMITS } from './limits';
import { MAX_REF_LENGTH, Segment, type SegmentList } from './segment.dto';
import { IsAttempt, IsCorrelationId, IsCounter, IsId, IsName, IsWithin } from './rules';
import type { AttemptId, Epoch, GroupId, Integer, JobId, RequestId, RoundId, ServerId } from './scalars';

/**
 * `request.claim`: takes pending requests. An empty reply after waitMs is not an error; POOL_PAUSED: the pool is
 * paused.
 */
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
  /** Claim requests of this job only, for a worker that cannot run requests of other jobs. Default: any job. */
  @IsOptional() @IsId() job?: JobId;
  /**
   * Kind of the worker: it gets requests of jobs that name the kind (`workerKind` of `round.open`), and no others.
   * Default: a built-in worker, for jobs that name no kind.
   */
  @IsOptional() @IsName() workerKind?: string;
}
/** One request to run. `attempt` fences every later message about it. */
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
   * Maximum generation time of the sample over all its attempts, milliseconds; `generatedMs` of it is used. When it is
   * over, end the attempt with `request.fail`, reason `timeout`.
   */
  timeoutMs?: Integer;
  /** Generation time of earlier attempts, milliseconds; absent without `timeoutMs`. */
  generatedMs?: Integer;
  /** Version of the weights of its round. */
  weightVersion: Integer;
  /** The server it was moved to: send it with `lb.acquire`, with its epoch. */
  boundServerId?: ServerId;
  /** Epoch of that server. */
  boundServerEpoch?: Epoch;
  /** Number of its attempts in a row that an engine failed or did not serve, without a further token between them. */
  setbacks?: Integer;
  /** Servers of these attempts, the last one last: send them with `lb.acquire`. */
  avoidServers?: ServerId[];
  /** Priority of its round, if that has one: send it with `lb.acquire`. */
  priority?: Integer;
  /** W3C trace context of the `round.open` of its round, if that was traced: send it to the engine. */
  traceparent?: string;
}
/** Reply of `request.claim`. It may have fewer requests than asked for, because its size is limited. */
export interface ClaimReply {
  /** The requests; empty if there are none. */
  claims: Claim[];
}

/** `request.segments`: one page of the segments of a request, in order, if they do not fit a claim or result. */
export class RequestSegmentsRequest {
  @IsCorrelationId() requestId!: RequestId;
  /** Cursor of the previous page. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
}
export interface RequestSegmentsReply extends NumberedPageReply {
  /** The segments, in order. */
  segments: Segment[];
}

/** Maximum generation time of one attempt, milliseconds; more means that a clock was set forward. */
const MAX_GENERATED_MS = 2 * LIMITS.timeoutMs;

/** Server and times of one attempt, as its worker has measured them. Times are milliseconds since its claim. */
export class AttemptRun {
  /** The server of its lease. */
  @IsId() serverId!: ServerId;
  /** Weight version of the server at the grant of the lease. */
  @IsCounter(0) weightVersion!: Integer;
  /** Time to the grant of the lease: the wait for a server. */
  @IsCounter(0) leasedMs!: Integer;
  /** Time to the first token; absent if there was none. */
  @IsOptional() @IsCounter(0) firstTokenMs?: Integer;
  /** Time to the end of the generation. */
  @IsCounter(0) endedMs!: Integer;
}

class AttemptMessage extends WorkerRequest {
  @IsCorrelationId() requestId!: RequestId;
  @IsAttempt() attempt!: AttemptId;
}

/**
 * `request.save`: reports that the attempt runs on this server; with a segment it is a partial save of its
 * tokens.
 */
export class SaveRequest extends AttemptMessage {
  /** Generation time of the attempt so far, milliseconds; for a sample with `timeoutMs`. */
  @IsOptional() @IsWithin(0, MAX_GENERATED_MS) generatedMs?: Integer;
  /** The server it runs on; required with the first call of an attempt that may be moved. */
  @IsOptional() @IsId() serverId?: ServerId;
  /** The engine has sent no token for some seconds: the request waits there, or was preempted. Absent: it runs. */
  @IsOptional() @IsBoolean() waiting?: boolean;
  /** Tokens of the attempt so far. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
  /**
   * Times of the attempt so far; for the times of moves, sent with the first tokens of an attempt that was bound to its
   * server.
   */
  @IsOptional() @ValidateNested() @Type(() => AttemptRun) run?: AttemptRun;
}
export interface SaveReply {
  /** `abort`: end the attempt with `request.fail`, reason `aborted`. */
  action: 'continue' | 'abort';
}

/** Longest finish reason of an engine, characters. */
export const MAX_FINISH_REASON_LENGTH = 64;

/** `request.complete`: the sample is finished. Store its payload before this call. */
export class CompleteRequest extends AttemptMessage {
  /** Why generation ended: the model stopped (`stop`), or the budget was used up (`length`). */
  @IsIn(['stop', 'length']) finishReason!: 'stop' | 'length';
  /** The finish reason as the engine named it, e.g. `tool_calls`; absent if it named none. */
  @IsOptional() @IsString() @MaxLength(MAX_FINISH_REASON_LENGTH) engineFinishReason?: string;
  /** The last segment; absent if the budget was used up before this attempt generated a token. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
  /** Server and times of the attempt, for the timeline of the round. */
  @IsOptional() @ValidateNested() @Type(() => AttemptRun) run?: AttemptRun;
}
/** State of the sample. */
export interface CompleteReply {
  /**
   * State of the sample. `unfinished`: its group was cut meanwhile and keeps the sample. `dropped`: its group no longer
   * needs it.
   */
  state: 'finished' | 'unfinished' | 'dropped';
  /** The group has all its samples and a place in the round. */
  groupAccepted: boolean;
  /** The round has all groups it needs. */
  roundCompleted: boolean;
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
 * Why an attempt ends. `engine-abort`: the engine ended the request without an abort: its trainer
 * aborted all requests, or the stream ended with `[DONE]` and without a reason. `engine-rejected`: the engine refused
 * the request, or, if retryable, answered it by something that is not of its dialect. `timeout`: the sample has
 * generated for its `timeoutMs`. `payload-full`: the payload quota of the job has no room.
 */
export type FailReason = (typeof FAIL_REASONS)[number];
/**
 * Why an attempt returned unfinished without a command. `worker-lost`: its worker epoch has expired. `internal`: ending
 * the attempt raised an error (INTERNAL); at the fifth error the request counts as lost.
 */
export type ReturnReason = FailReason | 'worker-lost' | 'internal';

/**
 * `request.fail`: the attempt ends without completing. The recorded intent decides the next state of the request: after
 * a cut `unfinished`, otherwise `pending`, or `failed` above the limits. `payload-full`: the quota of the job has no
 * room for the tokens; its requests are not claimed until there is room. `timeout`: the sample ends for good, and its
 * group according to `abortScope` of the round. The reasons `engine-error`, `engine-rejected` and, if not retryable,
 * `payload` count as failures (`maxFailures` of the policy), once for each start of a server (`run.serverId`), anew
 * after a further token, and not while most servers fail other prompts too; all others without a command count as
 * returns (`maxReturns`). A second retryable `engine-rejected` of one start of a server fails the request too, unless
 * another server of the pool has sent none. `no-server` is also the reason of an engine that could not serve now (429,
 * 503, no connection).
 */
export class FailRequest extends AttemptMessage {
  /** Generation time of the attempt, milliseconds; for a sample with `timeoutMs`. */
  @IsOptional() @IsWithin(0, MAX_GENERATED_MS) generatedMs?: Integer;
  /** Why the attempt ends. */
  @IsIn(FAIL_REASONS) reason!: FailReason;
  /** False: a retry cannot help (the engine refused the request). */
  @IsBoolean() retryable!: boolean;
  /** Message text. */
  @IsOptional() @MaxLength(1_000) message?: string;
  /** Tokens generated so far, which are kept. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
  /**
   * With the reason `payload`: reference of a segment of the claim that is missing in the payload store. Its tokens are
   * generated again.
   */
  @IsOptional() @IsString() @MaxLength(MAX_REF_LENGTH) missingRef?: string;
  /** Tokens of this attempt that could not be stored; the tokens after the last partial save count as waste. */
  @IsOptional() @IsWithin(0, LIMITS.maxTokens) lostTokens?: Integer;
  /** Server and times of the attempt, for the timeline of the round; absent if it had no server. */
  @IsOptional() @ValidateNested() @Type(() => AttemptRun) run?: AttemptRun;
}
export interface FailReply {
  /** State of the request now. */
  state: 'pending' | 'unfinished' | 'failed' | 'dropped';
}
