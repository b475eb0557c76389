import { JobRequest, type NumberedPageReply, type StampedReply, TrainerRequest } from './common.dto';
import { Type } from 'class-transformer';
import { IsOptional, MaxLength, ValidateNested, Equals } from 'class-validator';
import type { WireError } from './errors';
import { LIMITS } from './limits';
import { Segment } from './segment.dto';
import { IsAttempt, IsCorrelationId, IsCounter, IsEpoch, IsId, IsList, IsListOf, IsWithin, IsWorkerId } from './rules';
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
  /**
   * Maximum groups of the page.
   * @default 128
   */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
/** One group of the long-tail queue. */
export interface LongtailGroup {
  groupId: GroupId;
  /** Number of cuts of the group. */
  cuts: Integer;
  /** Step in which the group was first submitted. */
  firstStep: Integer;
  /** Samples that are finished. */
  finishedSamples: Integer;
  /** Samples that the group needs. */
  samples: Integer;
  /** Tokens of all samples of the group. */
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
  /** Segment with the tokens so far; absent: the last partial save counts. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
}

/**
 * `longtail.requeue`: a worker, or an agent loop of the trainer, returns unfinished samples with their tokens. The
 * whole group goes to the long-tail queue, with its finished samples, as after a cut. An operator calls the operation
 * without `workerId`: then workers get a command to stop the named samples, and the group is in the queue when all
 * workers have confirmed.
 */
export class RequeueRequest extends JobRequest {
  /** The worker that returns the samples; with `workerEpoch`. Absent: an operator. */
  @IsOptional() @IsWorkerId() workerId?: WorkerId;
  @IsOptional() @IsEpoch() workerEpoch?: Epoch;
  /** The samples. Each sample gets a separate answer. */
  @IsListOf(() => RequeuedSample, LIMITS.page, 1) requests!: RequeuedSample[];
}
/** Result for one returned sample. */
export interface RequeueResult {
  requestId: RequestId;
  /**
   * State of the sample; absent if there is an error. `cutting`: the worker has not confirmed yet. `dropped`, `failed`:
   * the group of the sample had ended before.
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
 * `longtail.drop`: drops groups of the queue, for example groups of prompts without variance. The payloads of the
 * groups are deleted, and the groups count in `droppedGroups`. Needs exactly one of `groupIds` and `all`.
 */
export class DropLongtailRequest extends TrainerRequest {
  /** The groups to drop; exactly one of `groupIds` and `all`. */
  @IsOptional() @IsList(LIMITS.groupsPerSubmit, 1) @IsId({ each: true }) groupIds?: GroupId[];
  /** All groups of the queue. */
  @IsOptional() @Equals(true) all?: true;
  /** Reason, for the events and the dropped groups. */
  @MaxLength(256) reason!: string;
  /** Cursor of the previous page, with `all`. Groups that entered the queue after the first page stay in the queue. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
}
export interface DropLongtailReply extends StampedReply, NumberedPageReply {
  /** Groups that were dropped. */
  dropped: GroupId[];
  /** Groups that are not in the queue: trained, dropped before, in a round, or never submitted. */
  notQueued: GroupId[];
  /** Requests of the dropped groups. */
  requests: Integer;
  /** Tokens of the dropped groups. */
  tokens: Integer;
}
