import { JobRequest, type NumberedPageReply, type StampedReply, TrainerRequest } from './common.dto';
import { Type } from 'class-transformer';
import { IsOptional, MaxLength, ValidateNested, Equals } from 'class-validator';
import type { WireError } from './errors';
import { LIMITS } from './limits';
import { Segment } from './segment.dto';
import { IsAttempt, IsCorrelationId, IsCounter, IsEpoch, IsId, IsList, IsListOf, IsWorkerId } from './rules';
import type { AttemptId, Epoch, GroupId, Integer, RequestId, WorkerId } from './scalars';

/** `longtail.stats` */
export class LongtailStatsRequest extends JobRequest {}
/** Size of a long-tail queue. */
export interface LongtailStats {
  /** Groups of the queue. */
  groups: Integer;
  /** Cut groups that are not in the queue yet. */
  settlingGroups: Integer;
}

/** `longtail.list`: one page of the queue, oldest first. */
export class LongtailListRequest extends JobRequest {
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
  /** Samples it needs. */
  samples: Integer;
  /** Tokens of its samples. */
  tokens: Integer;
}
export interface LongtailListReply extends NumberedPageReply {
  /** The page, oldest first. */
  groups: LongtailGroup[];
}

/** A sample that its worker returns unfinished. */
export class RequeuedSample {
  @IsCorrelationId() requestId!: RequestId;
  @IsAttempt() attempt!: AttemptId;
  /** Reference of the tokens so far, by the worker; without it the last partial save counts. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
}

/**
 * `longtail.requeue`: a worker, or an agent loop of the trainer, returns unfinished samples with their tokens. As after
 * a cut, the whole group goes to the long-tail queue, with its finished samples. Without a worker, an operator names
 * samples that run: their workers get a command to stop, and the group waits in the queue when they have confirmed.
 */
export class RequeueRequest extends JobRequest {
  /** The worker that returns the samples; with `workerEpoch`. Absent: an operator. */
  @IsOptional() @IsWorkerId() workerId?: WorkerId;
  @IsOptional() @IsEpoch() workerEpoch?: Epoch;
  /** The samples; each gets its own answer. */
  @IsListOf(() => RequeuedSample, LIMITS.page, 1) requests!: RequeuedSample[];
}
/** Result for one returned sample. */
export interface RequeueResult {
  requestId: RequestId;
  /**
   * State of the sample; `cutting`: its worker has not confirmed yet; `dropped`, `failed`: its group had ended before.
   * Absent if there is an error.
   */
  state?: 'pending' | 'cutting' | 'unfinished' | 'failed' | 'dropped';
  /** Why the sample was not accepted. */
  error?: WireError;
}
export interface RequeueReply {
  /** One result for each sample of the request, in order. */
  results: RequeueResult[];
}

/**
 * `longtail.drop`: drops groups of the queue that will never be trained (for example prompts without variance): exactly
 * one of `groupIds` and `all`. Their payloads are deleted, and they count in `droppedGroups`.
 */
export class DropLongtailRequest extends TrainerRequest {
  /** The groups to drop; exactly one of `groupIds` and `all`. */
  @IsOptional() @IsList(LIMITS.groupsPerSubmit, 1) @IsId({ each: true }) groupIds?: GroupId[];
  /** All groups of the queue. */
  @IsOptional() @Equals(true) all?: true;
  /** Reason in the events and in the dropped groups. */
  @MaxLength(256) reason!: string;
  /** Cursor of the previous page, with `all`: groups that entered the queue after the first page stay. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
}
export interface DropLongtailReply extends StampedReply, NumberedPageReply {
  /** Groups that were dropped. */
  dropped: GroupId[];
  /** Groups that are not in the queue: trained, dropped before, in a round, or never submitted. */
  notQueued: GroupId[];
  /** Requests of these groups. */
  requests: Integer;
  /** Tokens thrown away with them. */
  tokens: Integer;
}
