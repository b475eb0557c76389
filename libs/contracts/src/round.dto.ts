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
 * State of a round. `opening`: groups are still taken from the queue; `open`: it runs; `completed`: it has its
 * groups; `closed`: they are trained; `cancelled`: it was given up.
 */
export type RoundState = (typeof ROUND_STATES)[number];

/** `round.next`: pure read; the plan of the next round so that every step trains exactly its groups. */
export class NextRoundRequest {
  @IsId() job!: JobId;
  /** Groups one training step consumes. */
  @IsInt() @Min(1) @Max(LIMITS.groupsPerRound) groupsPerStep!: Integer;
  /** Groups of the data set that were never submitted. */
  @IsCounter(0) remainingGroups!: Integer;
  /** The same by domain; needed with `domainQuotas`. */
  @IsOptional() @IsObject() remainingByDomain?: Record<string, Integer>;
  /** Tail policy that the round would have. */
  @ValidateNested() @Type(() => TailPolicy) policy!: TailPolicy;
  /** Of an earlier open or takeover: a trainer that was taken over learns it here too (`FENCED`). */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/** Plan of a round. */
export interface RoundPlan {
  /** Fences `round.open`: names the state this plan was made for. */
  planId: string;
  /** 1-based training step this round is for. */
  step: Integer;
  /** `done`: nothing is left to train. */
  kind: RoundKind | 'done';
  /** Groups the step trains. */
  neededGroups: Integer;
  /** New groups to submit. */
  newGroups: Integer;
  /** Groups `round.open` takes from the long-tail queue. */
  takeGroups: Integer;
  /** New groups to submit by domain; only with `domainQuotas`. */
  newByDomain?: Record<string, Integer>;
  /** What an adaptive policy has chosen; absent when nothing is adaptive. */
  choice?: TailChoice;
}
export interface NextRoundReply extends RoundPlan {
  stamp: Stamp;
}

/** `round.open`: idempotent by planId; the only thing that takes groups from the long-tail queue. */
export class OpenRoundRequest {
  @IsId() job!: JobId;
  /** Id of the new round, chosen by the trainer; one that the job never had. */
  @IsId() roundId!: RoundId;
  /** That of the plan of `round.next`. */
  @IsId() planId!: string;
  /** That of the plan. */
  @IsCounter(1) step!: Integer;
  /** That of the plan. */
  @IsIn(ROUND_KINDS) kind!: RoundKind;
  /** That of the plan. */
  @IsInt() @Min(1) @Max(LIMITS.groupsPerRound) neededGroups!: Integer;
  /** Groups taken from the long-tail queue: that of the plan. */
  @IsInt() @Min(0) @Max(LIMITS.groupsPerRound) takeGroups!: Integer;
  /** New groups that will be submitted; with takeGroups at least neededGroups. */
  @IsInt() @Min(0) @Max(LIMITS.groupsPerRound) newGroups!: Integer;
  /** Tail policy of the round: the one the plan was made for. */
  @ValidateNested() @Type(() => TailPolicy) policy!: TailPolicy;
  /**
   * That of the pool: what was committed last, else what its servers report; another one is refused
   * (`WEIGHT_VERSION_MISMATCH`). Default: that. Segments have the version of their engine, whatever stands here.
   */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
  /** Of an earlier open or takeover; absent for the first round of a job. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
  /**
   * Claims stop when the trainer was not heard for this long, milliseconds.
   * @default 600000
   */
  @IsOptional() @IsCounter(1_000) orphanAfterMs?: Integer;
  /**
   * What an abort of one request, or the end of its `timeoutMs`, takes with it: its whole `group`, or nothing
   * (`sample`) while its group has `minSamples` others.
   * @default 'group'
   */
  @IsOptional() @IsIn(ABORT_SCOPES) abortScope?: AbortScope;
}
export interface OpenRoundReply {
  roundId: RoundId;
  /** To be sent with every later call of this trainer. */
  trainerEpoch: Epoch;
  /** State of the round. */
  state: RoundState;
  /** Groups taken from the long-tail queue. */
  takenGroups: Integer;
  stamp: Stamp;
}

/** `round.takeover`: a new trainer of the job; the one before is fenced. */
export class TakeoverRoundRequest {
  @IsId() job!: JobId;
  /** Idempotency of this takeover: a repeat gets the same epoch. */
  @IsId() takeoverId!: string;
}
export interface TakeoverRoundReply {
  /** To be sent with every later call of this trainer. */
  trainerEpoch: Epoch;
  /** Steps trained (rounds closed). */
  stepsTrained: Integer;
  /** Groups ever submitted: the trainer's position in its data. */
  submittedGroups: Integer;
  /** The round that is not closed, if any. */
  round?: RoundStatus;
  /** To be passed on: the trainer learns by it when Redis has lost what was done since. */
  stamp: Stamp;
}

/** One prompt with its samples. */
export class GroupSubmission {
  /** Id of the group, unique in its job. */
  @IsId() groupId!: GroupId;
  /** Samples of the prompt that are trained. */
  @IsInt() @Min(1) @Max(LIMITS.samplesPerGroup) samples!: Integer;
  /**
   * The group is trained with as few samples as this when the others are lost for good: aborted alone, out of time, or
   * failed. As long as more can come it waits for them, up to `samples`. Default: `samples`.
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.samplesPerGroup) minSamples?: Integer;
  /** The prompt inline, at most 32 kB; or promptRef. */
  @IsOptional() @IsObject() prompt?: Prompt;
  /** Reference of the prompt, stored before by `payload.put`; or prompt. */
  @IsOptional() @IsString() @MaxLength(MAX_REF_LENGTH) promptRef?: string;
  /** Token budget of each sample. */
  @IsInt() @Min(1) @Max(LIMITS.maxTokens) maxTokens!: Integer;
  /**
   * Longest time that a sample may generate, over all its attempts, milliseconds; not its waiting for a worker or a server,
   * and not the time of tokens that a policy has thrown away. A sample that takes longer ends as by an abort in the `abortScope` of its round. Default: none.
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.timeoutMs) timeoutMs?: Integer;
  /** Sampling parameters of all its samples, at most 4 kB of JSON. */
  @IsOptional() @IsObject() sampling?: SamplingParameters;
  /** Kind of the prompt, for `domainQuotas`, over-provision and long-tail statistics by domain. */
  @IsOptional() @IsName() domain?: string;
  /** Names the prompt in the prompt memory, the same in every epoch and job; default: its contents or promptRef. */
  @IsOptional() @IsCorrelationId() promptId?: string;
}

/** `round.submit`: one page of groups; a group already there with the same contents is skipped. */
export class SubmitGroupsRequest {
  @IsId() job!: JobId;
  @IsId() roundId!: RoundId;
  @IsEpoch() trainerEpoch!: Epoch;
  /** Of the last reply. */
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
  /** Groups of the round so far, the taken ones included. */
  roundGroups: Integer;
  /** Groups that were added. */
  added: Integer;
  /** Groups that were there already. */
  repeated: Integer;
  stamp: Stamp;
}

/** `round.status`: without roundId, the round that is not closed or the last one. */
export class RoundStatusRequest {
  @IsId() job!: JobId;
  @IsOptional() @IsId() roundId?: RoundId;
  /** Keeps the round from being orphaned. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/** Why a request failed for good. */
export interface RequestFailure {
  /** The request. */
  requestId: RequestId;
  /** Why its last attempt ended. */
  reason: ReturnReason;
  /** For people. */
  message?: string;
  /** When it failed, milliseconds since 1970. */
  atMs: Integer;
}
/** Why a round goes no further by itself, and what to do. */
export interface BlockedReason {
  /** `PAYLOAD_STORE_FULL`: the payload quota of the job. `STORE_FULL`: the memory of Redis. */
  code: 'PAYLOAD_STORE_FULL' | 'STORE_FULL';
  /** What to do, for people. */
  message: string;
  /** Absent for `STORE_FULL`. */
  sinceMs?: Integer;
}
/** How a round stands. */
export interface RoundStatus {
  roundId: RoundId;
  /** Training step it is for, from 1. */
  step: Integer;
  /** That of its plan. */
  kind: RoundKind;
  /** State of the round. */
  state: RoundState;
  /** Its tail policy. */
  policy: TailPolicy;
  /** Version of the weights it was opened with. */
  weightVersion: Integer;
  /** Epoch of its trainer. */
  trainerEpoch: Epoch;
  /** Groups the step trains. */
  neededGroups: Integer;
  /** New groups it was planned with. */
  newGroups: Integer;
  /** Groups taken from the long-tail queue. */
  takenGroups: Integer;
  /** Groups of the round: taken and submitted. */
  roundGroups: Integer;
  /** Groups accepted so far. */
  acceptedGroups: Integer;
  /** Groups of which a request failed for good. */
  failedGroups: Integer;
  /** Groups that lost a sample to an abort or a timeout and could not go on; never trained. */
  droppedGroups: Integer;
  /** max(0, needed - accepted - live): replacements asked for. */
  shortfallGroups: Integer;
  /** Samples finished in this round. */
  requestsDone: Integer;
  /** Requests that had been started and were cut. */
  requestsCut: Integer;
  /** Groups that went to the long-tail queue. */
  groupsRequeued: Integer;
  /** Groups with a reserved place that are not accepted yet: the round waits for them. */
  pinnedGroups: Integer;
  /** Groups that are finished and have no place yet. */
  heldGroups: Integer;
  /** Requests that workers have; only with a fixed concurrency. */
  requestsInFlight?: Integer;
  /** Tokens thrown away, for whatever reason. */
  wastedTokens: Integer;
  /** The same by reason. */
  wastedByReason: Partial<Record<WasteReason, Integer>>;
  /** What an adaptive policy chose for this round, and why. */
  choice?: TailChoice;
  /** Attempts that came back unfinished though nobody here had asked for that, by reason. */
  returnedAttempts: Partial<Record<ReturnReason, Integer>>;
  /** The last failures that were for good, oldest first; at most 5. */
  lastFailures?: RequestFailure[];
  /** None of its requests are claimed now, for this reason. */
  blockedReason?: BlockedReason;
  /** All cut requests are confirmed and all unaccepted groups are in the long-tail queue. */
  settled: boolean;
  /** Why it was completed; absent before. */
  completedReason?: 'accepted' | 'deadline' | 'accepted-fewer';
  /** When it was opened, milliseconds since 1970. */
  openedAtMs: Integer;
  /** When it was completed, milliseconds since 1970; absent before. */
  completedAtMs?: Integer;
  /** Absent in the reply of `round.takeover`, which has one of its own. */
  stamp?: Stamp;
}

/** `round.results`: accepted groups in the order of acceptance; also while the round is open. */
export class RoundResultsRequest {
  @IsId() job!: JobId;
  @IsId() roundId!: RoundId;
  /** Of the page before; absent: from the beginning. GENERATION_CHANGED when Redis has not what was read before it. */
  @IsOptional() @IsResultsCursor() cursor?: string;
  /**
   * Groups in the page.
   * @default 128
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.groupsPerResultsPage) limit?: Integer;
  /** How long to wait for the next group, or for the end of the round, when there is none yet, milliseconds. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.waitMs) waitMs?: Integer;
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/** One finished sample. */
export interface SampleResult {
  requestId: RequestId;
  /** Place of the sample in its group, from 0. */
  sampleIndex: Integer;
  /** Why generation ended: by itself (`stop`), or at the budget (`length`). */
  finishReason: 'stop' | 'length';
  /** Tokens of all segments. */
  tokenCount: Integer;
  /** Its tokens, in order, by reference. */
  segments: Segment[];
  /** There are too many for this message, and `segments` is empty: read them with `request.segments`. */
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
  /** The page ends in the middle of this group; its other samples follow. */
  more?: boolean;
  /** Of its samples and what they are made of; absent while `more`. Read again and the same, it needs no fetching. */
  digest?: string;
}
export interface RoundResultsReply {
  /** State of the round. */
  state: RoundState;
  /** The page, in the order of acceptance. */
  groups: GroupResult[];
  /** Where the next page starts; that of the last page is the proof for `round.close`. */
  cursor: string;
  /** No further page will come: the round is completed and this was the last one. */
  complete: boolean;
  /** With the last page: what the policy cost in this round. Its `acceptance` reweights samples by their length. */
  ledger?: LedgerSummary;
  stamp: Stamp;
}
/** A group that was read to its end. */
export class ReadGroup {
  @IsId() groupId!: GroupId;
  /** That of the results. */
  @IsString() @MaxLength(32) digest!: string;
}

/** `round.close`: the trainer acknowledges that it has trained on the results. */
export class CloseRoundRequest {
  @IsId() job!: JobId;
  @IsId() roundId!: RoundId;
  @IsEpoch() trainerEpoch!: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
  /** Of the last page of `round.results`: proves what was read. ROUND_MISMATCH when it is not what the round has. */
  @IsResultsCursor() cursor!: string;
  /** What was read, group by group: then a ROUND_MISMATCH says what is missing, extra or different. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(LIMITS.groupsPerClose)
  @ValidateNested({ each: true })
  @Type(() => ReadGroup)
  groups?: ReadGroup[];
}
export interface CloseRoundReply {
  roundId: RoundId;
  /** Steps trained, this one included. */
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
  /** Groups of a completed round that are not in the queue yet. */
  settlingGroups: Integer;
}

/** `longtail.list`: one page of the queue, oldest first. */
export class LongtailListRequest {
  @IsId() job!: JobId;
  /** Of the page before. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
}
/** One group of the long-tail queue. */
export interface LongtailGroup {
  groupId: GroupId;
  /** How often it was cut. */
  cuts: Integer;
  /** Step in which it was first submitted. */
  firstStep: Integer;
  /** Samples that are finished. */
  finishedSamples: Integer;
  /** Samples of the group. */
  samples: Integer;
  /** Tokens it has. */
  tokens: Integer;
}
export interface LongtailListReply {
  /** The page, oldest first. */
  groups: LongtailGroup[];
  /** Send it for the next page; absent at the end. */
  cursor?: Integer;
}

/** `job.status`: the counts of a job. */
export class JobStatusRequest {
  @IsId() job!: JobId;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/** submitted = pending + claimed + running + cutting + unfinished + finished + trained + failed + dropped, always. */
export interface RequestCounts {
  /** All samples ever submitted. */
  submitted: Integer;
  /** Waiting for a worker. */
  pending: Integer;
  /** With a worker, not running yet. */
  claimed: Integer;
  /** Running on an engine. */
  running: Integer;
  /** To be stopped; not confirmed yet. */
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
/** How a job stands. */
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
  /** Groups of which a request failed for good. */
  failedGroups: Integer;
  /** Groups that lost a sample to an abort; never trained. */
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
  /** Only those with a round that is not closed. */
  @IsOptional() @IsBoolean() openOnly?: boolean;
  /** Of the page before. */
  @IsOptional() @IsScanCursor() cursor?: string;
}
export interface ListJobsReply {
  /** Sorted within the page. */
  jobs: JobId[];
  /** Absent at the end. */
  cursor?: string;
}
