import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsObject,
  IsOptional,
  IsString,
  Max,
  MaxLength,
  Min,
  ValidateNested,
} from 'class-validator';
import type { Prompt, SamplingParameters } from './generation';
import { ABORT_SCOPES, type AbortScope } from './abort.dto';
import { IsScanCursor } from './cursors';
import { IsEpoch } from './epochs';
import {
  IsCorrelationId,
  IsId,
  type GroupId,
  type JobId,
  type RequestId,
  type RoundId,
  type Epoch,
  IsName,
} from './ids';
import { IsCounter, type Integer } from './integers';
import type { LedgerSummary } from './ledger.dto';
import { LIMITS } from './limits';
import type { ReturnReason } from './request.dto';
import { MAX_REF_LENGTH, type Segment } from './segment.dto';
import { IsResultsCursor, IsStamp, type Stamp } from './stamp';
import { TailPolicy, type TailChoice, type WasteReason } from './tail-policy.dto';

export const ROUND_KINDS = ['short', 'long'] as const;
/** `short`: mostly new prompts, over-provisioned; `long`: groups of the long-tail queue. */
export type RoundKind = (typeof ROUND_KINDS)[number];
export const ROUND_STATES = ['opening', 'open', 'completed', 'closed', 'cancelled'] as const;
/**
 * State of a round. `opening`: groups are still taken from the queue; `open`: it runs; `completed`: it has all its
 * groups; `closed`: they are trained; `cancelled`: it was cancelled.
 */
export type RoundState = (typeof ROUND_STATES)[number];

/** `round.next`: returns the plan of the next round; every step trains exactly its groups. Read-only. */
export class NextRoundRequest {
  @IsId() job!: JobId;
  /** Groups of one training step. */
  @IsInt() @Min(1) @Max(LIMITS.groupsPerRound) groupsPerStep!: Integer;
  /** Groups of the data set that were never submitted. */
  @IsCounter(0) remainingGroups!: Integer;
  /** Groups that were never submitted, by domain; required with `domainQuotas`. */
  @IsOptional() @IsObject() remainingByDomain?: Record<string, Integer>;
  /** Tail policy of the round. */
  @ValidateNested() @Type(() => TailPolicy) policy!: TailPolicy;
  /** Epoch of an earlier open or takeover; a trainer that was taken over gets `FENCED`. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/** Plan of a round. */
export interface RoundPlan {
  /** Id of the plan: it contains the state that the plan was made for, and fences `round.open`. */
  planId: string;
  /** Training step of the round, from 1. */
  step: Integer;
  /** Kind of the round; `done`: no groups are left to train. */
  kind: RoundKind | 'done';
  /** Groups the step trains. */
  neededGroups: Integer;
  /** New groups to submit. */
  newGroups: Integer;
  /** Groups `round.open` takes from the long-tail queue. */
  takeGroups: Integer;
  /** New groups to submit, by domain; only with `domainQuotas`. */
  newByDomain?: Record<string, Integer>;
  /** The choice of an adaptive policy; absent without one. */
  choice?: TailChoice;
}
export interface NextRoundReply extends RoundPlan {
  stamp: Stamp;
}

/** `round.open`: opens a round and takes its groups from the long-tail queue; idempotent by planId. */
export class OpenRoundRequest {
  @IsId() job!: JobId;
  /** Id of the new round, chosen by the trainer; not used before in the job. */
  @IsId() roundId!: RoundId;
  /** As in the plan of `round.next`. */
  @IsId() planId!: string;
  /** As in the plan. */
  @IsCounter(1) step!: Integer;
  /** As in the plan. */
  @IsIn(ROUND_KINDS) kind!: RoundKind;
  /** As in the plan. */
  @IsInt() @Min(1) @Max(LIMITS.groupsPerRound) neededGroups!: Integer;
  /** Groups taken from the long-tail queue, as in the plan. */
  @IsInt() @Min(0) @Max(LIMITS.groupsPerRound) takeGroups!: Integer;
  /** New groups that will be submitted; together with takeGroups at least neededGroups. */
  @IsInt() @Min(0) @Max(LIMITS.groupsPerRound) newGroups!: Integer;
  /** Tail policy of the round, as for the plan. */
  @ValidateNested() @Type(() => TailPolicy) policy!: TailPolicy;
  /**
   * Weight version of the pool (default): the last committed one, otherwise the one that its servers report. Any other
   * is refused (`WEIGHT_VERSION_MISMATCH`). Segments have the version of their engine.
   */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
  /** Epoch of an earlier open or takeover; absent for the first round of a job. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
  /**
   * Silence of the trainer after which claims stop, milliseconds.
   * @default 600000
   */
  @IsOptional() @IsCounter(1_000) orphanAfterMs?: Integer;
  /**
   * Scope of an abort or timeout of one request: the whole `group`, or only the `sample` while its group has
   * `minSamples` others.
   * @default 'group'
   */
  @IsOptional() @IsIn(ABORT_SCOPES) abortScope?: AbortScope;
}
export interface OpenRoundReply {
  roundId: RoundId;
  /** Send this with every later call of the trainer. */
  trainerEpoch: Epoch;
  /** State of the round. */
  state: RoundState;
  /** Groups taken from the long-tail queue. */
  takenGroups: Integer;
  stamp: Stamp;
}

/** `round.takeover`: starts a new trainer of the job and fences the previous one. */
export class TakeoverRoundRequest {
  @IsId() job!: JobId;
  /** Id of the takeover, for idempotency: a repeat gets the same epoch. */
  @IsId() takeoverId!: string;
}
export interface TakeoverRoundReply {
  /** Send this with every later call of the trainer. */
  trainerEpoch: Epoch;
  /** Steps trained (rounds closed). */
  stepsTrained: Integer;
  /** Groups ever submitted: the trainer's position in its data. */
  submittedGroups: Integer;
  /** The round that is not closed, if any. */
  round?: RoundStatus;
  /** Send this with the next call; it detects when Redis has lost later changes. */
  stamp: Stamp;
}

/** One prompt with its samples. */
export class GroupSubmission {
  /** Id of the group, unique in its job. */
  @IsId() groupId!: GroupId;
  /** Number of samples to train. */
  @IsInt() @Min(1) @Max(LIMITS.samplesPerGroup) samples!: Integer;
  /**
   * Smallest number of samples to train if others are lost for good: aborted, timed out, or failed. The group waits for
   * all samples that can still finish, up to `samples`. Default: `samples`.
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.samplesPerGroup) minSamples?: Integer;
  /** The prompt inline, at most 32 kB; or promptRef. */
  @IsOptional() @IsObject() prompt?: Prompt;
  /** Reference of the prompt, stored before by `payload.put`; or prompt. */
  @IsOptional() @IsString() @MaxLength(MAX_REF_LENGTH) promptRef?: string;
  /** Token budget of each sample. */
  @IsInt() @Min(1) @Max(LIMITS.maxTokens) maxTokens!: Integer;
  /**
   * Maximum generation time of a sample over all its attempts, milliseconds. Waiting for a worker or a server does not
   * count, nor does the time of tokens that a policy has thrown away. A sample that takes longer ends as by an abort in
   * the `abortScope` of its round. Default: none.
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.timeoutMs) timeoutMs?: Integer;
  /** Sampling parameters of all its samples, at most 4 kB of JSON. */
  @IsOptional() @IsObject() sampling?: SamplingParameters;
  /** Domain of the prompt, for `domainQuotas`, over-provision and long-tail statistics. */
  @IsOptional() @IsName() domain?: string;
  /**
   * Id of the prompt in the prompt memory, the same in every pass over the data and every job; default: its contents or
   * promptRef.
   */
  @IsOptional() @IsCorrelationId() promptId?: string;
}

/** `round.submit`: submits one page of groups; a known group with the same contents is skipped. */
export class SubmitGroupsRequest {
  @IsId() job!: JobId;
  @IsId() roundId!: RoundId;
  @IsEpoch() trainerEpoch!: Epoch;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
  /** The groups. */
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.groupsPerSubmit)
  @ValidateNested({ each: true })
  @Type(() => GroupSubmission)
  groups!: GroupSubmission[];
}
export interface SubmitGroupsReply {
  /** Groups of the round so far, including those from the queue. */
  roundGroups: Integer;
  /** Groups that were added. */
  added: Integer;
  /** Groups that were already in the round. */
  repeated: Integer;
  stamp: Stamp;
}

/** `round.status`: state of a round; default: the round that is not closed, or the last one. */
export class RoundStatusRequest {
  @IsId() job!: JobId;
  @IsOptional() @IsId() roundId?: RoundId;
  /** Counts as a call of the trainer, so that claims continue. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/** Why a request failed for good. */
export interface RequestFailure {
  /** The request. */
  requestId: RequestId;
  /** Why its last attempt ended. */
  reason: ReturnReason;
  /** Message text. */
  message?: string;
  /** When it failed, milliseconds since 1970. */
  atMs: Integer;
}
/** Why a round is blocked, and what to do. */
export interface BlockedReason {
  /** `PAYLOAD_STORE_FULL`: the payload quota of the job. `STORE_FULL`: the memory of Redis. */
  code: 'PAYLOAD_STORE_FULL' | 'STORE_FULL';
  /** What to do, as text. */
  message: string;
  /** Since when; absent for `STORE_FULL`. */
  sinceMs?: Integer;
}
/** Why a round takes no more groups: it has those it needs, has passed its deadline, or needs fewer. */
export type CompletedReason = 'accepted' | 'deadline' | 'accepted-fewer';
/** State and progress of a round. */
export interface RoundStatus {
  roundId: RoundId;
  /** Training step, from 1. */
  step: Integer;
  /** As in its plan. */
  kind: RoundKind;
  /** State of the round. */
  state: RoundState;
  /** Its tail policy. */
  policy: TailPolicy;
  /** Weight version at its opening. */
  weightVersion: Integer;
  /** Epoch of its trainer. */
  trainerEpoch: Epoch;
  /** Groups the step trains. */
  neededGroups: Integer;
  /** New groups of its plan. */
  newGroups: Integer;
  /** Groups taken from the long-tail queue. */
  takenGroups: Integer;
  /** Groups of the round: taken and submitted. */
  roundGroups: Integer;
  /** Groups accepted so far. */
  acceptedGroups: Integer;
  /** Groups with a request that failed for good. */
  failedGroups: Integer;
  /** Groups that lost a sample to an abort or a timeout and could not go on; never trained. */
  droppedGroups: Integer;
  /** Replacements that the round asks for: max(0, needed - accepted - live). */
  shortfallGroups: Integer;
  /** Samples finished in this round. */
  requestsDone: Integer;
  /** Started requests that were cut. */
  requestsCut: Integer;
  /** Groups that went to the long-tail queue. */
  groupsRequeued: Integer;
  /** Groups with a reserved place that are not accepted yet: the round waits for them. */
  pinnedGroups: Integer;
  /** Finished groups without a place. */
  heldGroups: Integer;
  /** Requests of workers; only for fixed-concurrency. */
  requestsInFlight?: Integer;
  /** Tokens thrown away. */
  wastedTokens: Integer;
  /** Tokens thrown away, by reason. */
  wastedByReason: Partial<Record<WasteReason, Integer>>;
  /** The choice of an adaptive policy for this round, and its reasons. */
  choice?: TailChoice;
  /** Attempts that returned unfinished without a command, by reason. */
  returnedAttempts: Partial<Record<ReturnReason, Integer>>;
  /** The last requests that failed for good, oldest first; at most 5. */
  lastFailures?: RequestFailure[];
  /** Why no request of the round is claimed at present. */
  blockedReason?: BlockedReason;
  /** All cut requests are confirmed, and all groups that were not accepted are in the long-tail queue. */
  settled: boolean;
  /** Why the round was completed; absent before. */
  completedReason?: CompletedReason;
  /** When it was opened, milliseconds since 1970. */
  openedAtMs: Integer;
  /** When it was completed, milliseconds since 1970; absent before. */
  completedAtMs?: Integer;
  /** Absent in the reply of `round.takeover`, which has its own stamp. */
  stamp?: Stamp;
}

/** `round.results`: returns accepted groups in the order of acceptance, also while the round is open. */
export class RoundResultsRequest {
  @IsId() job!: JobId;
  @IsId() roundId!: RoundId;
  /**
   * Cursor of the previous page; absent: from the beginning. GENERATION_CHANGED if Redis has lost groups that were read
   * before.
   */
  @IsOptional() @IsResultsCursor() cursor?: string;
  /**
   * Maximum groups of the page.
   * @default 128
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.groupsPerResultsPage) limit?: Integer;
  /** How long to wait for the next group or the end of the round, milliseconds. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.waitMs) waitMs?: Integer;
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/** One finished sample. */
export interface SampleResult {
  requestId: RequestId;
  /** Index of the sample in its group, from 0. */
  sampleIndex: Integer;
  /** Why generation ended: the model stopped (`stop`), or the budget was used up (`length`). */
  finishReason: 'stop' | 'length';
  /** Tokens of all segments. */
  tokenCount: Integer;
  /** References of its tokens, in order. */
  segments: Segment[];
  /** The segments do not fit this message, and `segments` is empty: read them with `request.segments`. */
  segmentsFollow?: true;
}
/** One accepted group. */
export interface GroupResult {
  groupId: GroupId;
  /** Domain it was submitted with, if any. */
  domain?: string;
  /** Reference of its prompt. */
  promptRef: string;
  /** How often the group was cut before. */
  cuts: Integer;
  /** Step in which it was first submitted. */
  firstStep: Integer;
  /** Its samples. */
  samples: SampleResult[];
  /** The page ends within this group; its other samples are in the next page. */
  more?: boolean;
  /**
   * Digest of the samples and their segments; absent while `more`. If it is the same in a later read, the payloads need
   * not be fetched again.
   */
  digest?: string;
}
export interface RoundResultsReply {
  /** State of the round. */
  state: RoundState;
  /** The groups, in the order of acceptance. */
  groups: GroupResult[];
  /** Cursor for the next page; the cursor of the last page is the proof for `round.close`. */
  cursor: string;
  /** The round is completed, and this is the last page. */
  complete: boolean;
  /** With the last page: cost of the policy in this round. Its `acceptance` reweights samples by length. */
  ledger?: LedgerSummary;
  stamp: Stamp;
}
/** A group that was read completely. */
export class ReadGroup {
  @IsId() groupId!: GroupId;
  /** As in the results. */
  @IsString() @MaxLength(32) digest!: string;
}

/** `round.close`: marks the groups of the round as trained. */
export class CloseRoundRequest {
  @IsId() job!: JobId;
  @IsId() roundId!: RoundId;
  @IsEpoch() trainerEpoch!: Epoch;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
  /**
   * Cursor of the last page of `round.results`: proves which groups were read. ROUND_MISMATCH if they differ from the
   * round.
   */
  @IsResultsCursor() cursor!: string;
  /** The groups that were read: then the details of a ROUND_MISMATCH name missing, extra and different groups. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(LIMITS.groupsPerClose)
  @ValidateNested({ each: true })
  @Type(() => ReadGroup)
  groups?: ReadGroup[];
}
export interface CloseRoundReply {
  roundId: RoundId;
  /** Steps trained, including this one. */
  stepsTrained: Integer;
  /** Groups of this round. */
  trainedGroups: Integer;
  /** Their samples. */
  trainedRequests: Integer;
  stamp: Stamp;
}

/** `longtail.stats` */
export class LongtailStatsRequest {
  @IsId() job!: JobId;
}
/** Size of a long-tail queue. */
export interface LongtailStats {
  /** Groups of the queue. */
  groups: Integer;
  /** Cut groups that are not in the queue yet. */
  settlingGroups: Integer;
}

/** `longtail.list`: one page of the queue, oldest first. */
export class LongtailListRequest {
  @IsId() job!: JobId;
  /** Cursor of the previous page. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
}
/** One group of the long-tail queue. */
export interface LongtailGroup {
  groupId: GroupId;
  /** Number of its cuts. */
  cuts: Integer;
  /** Step in which it was first submitted. */
  firstStep: Integer;
  /** Samples that are finished. */
  finishedSamples: Integer;
  /** Samples of the group. */
  samples: Integer;
  /** Tokens of its samples. */
  tokens: Integer;
}
export interface LongtailListReply {
  /** The page, oldest first. */
  groups: LongtailGroup[];
  /** Send this for the next page; absent on the last page. */
  cursor?: Integer;
}

/** `job.status`: state and request counts of a job. */
export class JobStatusRequest {
  @IsId() job!: JobId;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/**
 * Requests by state; always submitted = pending + claimed + running + cutting + unfinished + finished + trained +
 * failed + dropped.
 */
export interface RequestCounts {
  /** All submitted samples. */
  submitted: Integer;
  /** Waiting for a worker. */
  pending: Integer;
  /** With a worker, not running yet. */
  claimed: Integer;
  /** Running on an engine. */
  running: Integer;
  /** To be stopped, not confirmed yet. */
  cutting: Integer;
  /** In the long-tail queue, not finished. */
  unfinished: Integer;
  /** Finished, not trained yet. */
  finished: Integer;
  /** Trained. */
  trained: Integer;
  /** Failed for good. */
  failed: Integer;
  /** Dropped, never trained. */
  dropped: Integer;
}
/** State of a job. */
export interface JobStatus {
  job: JobId;
  /** Epoch of its trainer. */
  trainerEpoch: Epoch;
  /** Steps trained (rounds closed). */
  stepsTrained: Integer;
  /** Groups ever submitted. */
  submittedGroups: Integer;
  /** Groups trained. */
  trainedGroups: Integer;
  /** Groups with a request that failed for good. */
  failedGroups: Integer;
  /** Groups that lost samples to an abort and were dropped; never trained. */
  droppedGroups: Integer;
  /** Its long-tail queue. */
  longtail: LongtailStats;
  /** Its requests, by state. */
  requests: RequestCounts;
  /** The round that is not closed, if any. */
  openRoundId?: RoundId;
  stamp: Stamp;
}

/** `job.list`: one page of the jobs of the pool. */
export class ListJobsRequest {
  /** Only jobs with a round that is not closed. */
  @IsOptional() @IsBoolean() openOnly?: boolean;
  /** Cursor of the previous page. */
  @IsOptional() @IsScanCursor() cursor?: string;
}
export interface ListJobsReply {
  /** The jobs, sorted within the page. */
  jobs: JobId[];
  /** Send this for the next page; absent on the last page. */
  cursor?: string;
}
