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
import { IsCounter } from './integers';
import type { LedgerSummary } from './ledger.dto';
import { LIMITS } from './limits';
import type { ReturnReason } from './request.dto';
import { MAX_REF_LENGTH, type Segment } from './segment.dto';
import { IsResultsCursor, IsStamp } from './stamp';
import { TailPolicy, type TailChoice, type WasteReason } from './tail-policy.dto';

export const ROUND_KINDS = ['short', 'long'] as const;
export type RoundKind = (typeof ROUND_KINDS)[number];
export const ROUND_STATES = ['opening', 'open', 'completed', 'closed', 'cancelled'] as const;
export type RoundState = (typeof ROUND_STATES)[number];

/** `round.next`: pure read; the plan of the next round so that every step trains exactly its groups. */
export class NextRoundRequest {
  @IsId() job!: JobId;
  /** Groups one training step consumes. */
  @IsInt() @Min(1) @Max(LIMITS.groupsPerRound) groupsPerStep!: number;
  /** Groups of the data set that were never submitted. */
  @IsCounter(0) remainingGroups!: number;
  /** The same by domain; needed with `domainQuotas`. */
  @IsOptional() @IsObject() remainingByDomain?: Record<string, number>;
  @ValidateNested() @Type(() => TailPolicy) policy!: TailPolicy;
  /** Of an earlier open or takeover: a trainer that was taken over learns it here too (`FENCED`). */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: string;
}
export interface RoundPlan {
  /** Fences `round.open`: names the state this plan was made for. */
  planId: string;
  /** 1-based training step this round is for. */
  step: number;
  /** `done`: nothing is left to train. */
  kind: RoundKind | 'done';
  neededGroups: number;
  /** New groups to submit. */
  newGroups: number;
  /** Groups `round.open` takes from the long-tail queue. */
  takeGroups: number;
  /** New groups to submit by domain; only with `domainQuotas`. */
  newByDomain?: Record<string, number>;
  /** What an adaptive policy has chosen; absent when nothing is adaptive. */
  choice?: TailChoice;
}
export interface NextRoundReply extends RoundPlan {
  stamp: string;
}

/** `round.open`: idempotent by planId; the only thing that takes groups from the long-tail queue. */
export class OpenRoundRequest {
  @IsId() job!: JobId;
  @IsId() roundId!: RoundId;
  @IsId() planId!: string;
  @IsCounter(1) step!: number;
  @IsIn(ROUND_KINDS) kind!: RoundKind;
  @IsInt() @Min(1) @Max(LIMITS.groupsPerRound) neededGroups!: number;
  @IsInt() @Min(0) @Max(LIMITS.groupsPerRound) takeGroups!: number;
  /** New groups that will be submitted; with takeGroups at least neededGroups. */
  @IsInt() @Min(0) @Max(LIMITS.groupsPerRound) newGroups!: number;
  @ValidateNested() @Type(() => TailPolicy) policy!: TailPolicy;
  /**
   * That of the pool: what was committed last, else what its servers report; another one is refused
   * (`WEIGHT_VERSION_MISMATCH`). Default: that. Segments have the version of their engine, whatever stands here.
   */
  @IsOptional() @IsCounter(0) weightVersion?: number;
  /** Of an earlier open or takeover; absent for the first round of a job. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: string;
  /** Claims stop when the trainer was not heard for this long, milliseconds; default 600,000. */
  @IsOptional() @IsCounter(1_000) orphanAfterMs?: number;
  /**
   * What an abort of one request, or the end of its `timeoutMs`, takes with it: its whole `group`, or nothing
   * (`sample`) while its group has `minSamples` others. Default `group`.
   */
  @IsOptional() @IsIn(ABORT_SCOPES) abortScope?: AbortScope;
}
export interface OpenRoundReply {
  roundId: RoundId;
  trainerEpoch: Epoch;
  state: RoundState;
  /** Groups taken from the long-tail queue. */
  takenGroups: number;
  stamp: string;
}

/** `round.takeover`: a new trainer of the job; the one before is fenced. */
export class TakeoverRoundRequest {
  @IsId() job!: JobId;
  /** Idempotency of this takeover: a repeat gets the same epoch. */
  @IsId() takeoverId!: string;
}
export interface TakeoverRoundReply {
  trainerEpoch: Epoch;
  /** Steps trained (rounds closed). */
  stepsTrained: number;
  /** Groups ever submitted: the trainer's position in its data. */
  submittedGroups: number;
  /** The round that is not closed, if any. */
  round?: RoundStatus;
  /** To be passed on: the trainer learns by it when Redis has lost what was done since. */
  stamp: string;
}

/** One prompt with its samples. */
export class GroupSubmission {
  @IsId() groupId!: GroupId;
  @IsInt() @Min(1) @Max(LIMITS.samplesPerGroup) samples!: number;
  /**
   * The group is trained with as few samples as this when the others are lost for good: aborted alone, out of time, or
   * failed. As long as more can come it waits for them, up to `samples`. Default: `samples`.
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.samplesPerGroup) minSamples?: number;
  /** The prompt inline, at most 32 kB; or promptRef. */
  @IsOptional() @IsObject() prompt?: Prompt;
  @IsOptional() @IsString() @MaxLength(MAX_REF_LENGTH) promptRef?: string;
  @IsInt() @Min(1) @Max(LIMITS.maxTokens) maxTokens!: number;
  /**
   * Longest time that a sample may generate, over all its attempts, milliseconds; not its waiting for a worker or a server,
   * and not the time of tokens that a policy has thrown away. A sample that takes longer ends as by an abort in the `abortScope` of its round. Default: none.
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.timeoutMs) timeoutMs?: number;
  @IsOptional() @IsObject() sampling?: SamplingParameters;
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
  @IsOptional() @IsStamp() stamp?: string;
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.groupsPerSubmit)
  @ValidateNested({ each: true })
  @Type(() => GroupSubmission)
  groups!: GroupSubmission[];
}
export interface SubmitGroupsReply {
  /** Groups of the round so far, the taken ones included. */
  roundGroups: number;
  added: number;
  repeated: number;
  stamp: string;
}

/** `round.status`: without roundId, the round that is not closed or the last one. */
export class RoundStatusRequest {
  @IsId() job!: JobId;
  @IsOptional() @IsId() roundId?: RoundId;
  /** Keeps the round from being orphaned. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: string;
}
/** Why a request failed for good. */
export interface RequestFailure {
  requestId: RequestId;
  reason: ReturnReason;
  message?: string;
  atMs: number;
}
/** Why a round goes no further by itself, and what to do. */
export interface BlockedReason {
  code: 'PAYLOAD_STORE_FULL' | 'STORE_FULL';
  message: string;
  /** Absent for `STORE_FULL`. */
  sinceMs?: number;
}
export interface RoundStatus {
  roundId: RoundId;
  step: number;
  kind: RoundKind;
  state: RoundState;
  policy: TailPolicy;
  weightVersion: number;
  trainerEpoch: Epoch;
  neededGroups: number;
  newGroups: number;
  takenGroups: number;
  /** Groups of the round: taken and submitted. */
  roundGroups: number;
  acceptedGroups: number;
  failedGroups: number;
  /** Groups that lost a sample to an abort or a timeout and could not go on; never trained. */
  droppedGroups: number;
  /** max(0, needed - accepted - live): replacements asked for. */
  shortfallGroups: number;
  /** Samples finished in this round. */
  requestsDone: number;
  /** Requests that had been started and were cut. */
  requestsCut: number;
  /** Groups that went to the long-tail queue. */
  groupsRequeued: number;
  /** Groups with a reserved place that are not accepted yet: the round waits for them. */
  pinnedGroups: number;
  /** Groups that are finished and have no place yet. */
  heldGroups: number;
  /** Requests that workers have; only with a fixed concurrency. */
  requestsInFlight?: number;
  /** Tokens thrown away, for whatever reason. */
  wastedTokens: number;
  wastedByReason: Partial<Record<WasteReason, number>>;
  /** What an adaptive policy chose for this round, and why. */
  choice?: TailChoice;
  /** Attempts that came back unfinished though nobody here had asked for that, by reason. */
  returnedAttempts: Partial<Record<ReturnReason, number>>;
  /** The last failures that were for good, oldest first; at most 5. */
  lastFailures?: RequestFailure[];
  /** None of its requests are claimed now, for this reason. */
  blockedReason?: BlockedReason;
  /** All cut requests are confirmed and all unaccepted groups are in the long-tail queue. */
  settled: boolean;
  completedReason?: 'accepted' | 'deadline' | 'accepted-fewer';
  openedAtMs: number;
  completedAtMs?: number;
  /** Absent in the reply of `round.takeover`, which has one of its own. */
  stamp?: string;
}

/** `round.results`: accepted groups in the order of acceptance; also while the round is open. */
export class RoundResultsRequest {
  @IsId() job!: JobId;
  @IsId() roundId!: RoundId;
  /** Of the page before; absent: from the beginning. GENERATION_CHANGED when Redis has not what was read before it. */
  @IsOptional() @IsResultsCursor() cursor?: string;
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.groupsPerResultsPage) limit?: number;
  /** How long to wait for the next group, or for the end of the round, when there is none yet, milliseconds. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.waitMs) waitMs?: number;
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: string;
}
export interface SampleResult {
  requestId: RequestId;
  sampleIndex: number;
  finishReason: 'stop' | 'length';
  tokenCount: number;
  segments: Segment[];
  /** There are too many for this message, and `segments` is empty: read them with `request.segments`. */
  segmentsFollow?: true;
}
export interface GroupResult {
  groupId: GroupId;
  domain?: string;
  promptRef: string;
  /** How often the group was cut before. */
  cuts: number;
  /** Step in which it was first submitted. */
  firstStep: number;
  samples: SampleResult[];
  /** The page ends in the middle of this group; its other samples follow. */
  more?: boolean;
  /** Of its samples and what they are made of; absent while `more`. Read again and the same, it needs no fetching. */
  digest?: string;
}
export interface RoundResultsReply {
  state: RoundState;
  groups: GroupResult[];
  /** Where the next page starts; that of the last page is the proof for `round.close`. */
  cursor: string;
  /** No further page will come: the round is completed and this was the last one. */
  complete: boolean;
  /** With the last page: what the policy cost in this round. Its `acceptance` reweights samples by their length. */
  ledger?: LedgerSummary;
  stamp: string;
}
/** A group that was read to its end. */
export class ReadGroup {
  @IsId() groupId!: GroupId;
  @IsString() @MaxLength(32) digest!: string;
}

/** `round.close`: the trainer acknowledges that it has trained on the results. */
export class CloseRoundRequest {
  @IsId() job!: JobId;
  @IsId() roundId!: RoundId;
  @IsEpoch() trainerEpoch!: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: string;
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
  stepsTrained: number;
  trainedGroups: number;
  trainedRequests: number;
  stamp: string;
}

/** `longtail.stats` */
export class LongtailStatsRequest {
  @IsId() job!: JobId;
}
export interface LongtailStats {
  groups: number;
  /** Groups of a completed round that are not in the queue yet. */
  settlingGroups: number;
}

/** `longtail.list`: one page of the queue, oldest first. */
export class LongtailListRequest {
  @IsId() job!: JobId;
  @IsOptional() @IsCounter(0) cursor?: number;
}
export interface LongtailListReply {
  groups: {
    groupId: GroupId;
    cuts: number;
    firstStep: number;
    finishedSamples: number;
    samples: number;
    tokens: number;
  }[];
  cursor?: number;
}

/** `job.status`: the counts of a job. */
export class JobStatusRequest {
  @IsId() job!: JobId;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: string;
}
/** submitted = pending + claimed + running + cutting + unfinished + finished + trained + failed + dropped, always. */
export interface RequestCounts {
  submitted: number;
  pending: number;
  claimed: number;
  running: number;
  cutting: number;
  unfinished: number;
  finished: number;
  trained: number;
  failed: number;
  dropped: number;
}
export interface JobStatus {
  job: JobId;
  trainerEpoch: Epoch;
  stepsTrained: number;
  submittedGroups: number;
  trainedGroups: number;
  failedGroups: number;
  /** Groups that lost a sample to an abort; never trained. */
  droppedGroups: number;
  longtail: LongtailStats;
  requests: RequestCounts;
  openRoundId?: RoundId;
  stamp: string;
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
