import { Type } from 'class-transformer';
import { ArrayMaxSize, ArrayMinSize, Equals, IsArray, IsOptional, MaxLength, ValidateNested } from 'class-validator';
import { IsAttempt, IsEpoch } from './epochs';
import type { WireError } from './errors';
import {
  IsCorrelationId,
  IsId,
  type GroupId,
  type JobId,
  type RequestId,
  type WorkerId,
  type AttemptId,
  type Epoch,
  IsWorkerId,
} from './ids';
import { IsCounter, type Integer } from './integers';
import { LIMITS } from './limits';
import { Segment } from './segment.dto';
import { IsStamp, type Stamp } from './stamp';

/** A sample that its holder will not finish now. */
export class RequeuedSample {
  @IsCorrelationId() requestId!: RequestId;
  @IsAttempt() attempt!: AttemptId;
  /** Tokens made so far, by reference; without it the last checkpoint counts. */
  @IsOptional() @ValidateNested() @Type(() => Segment) segment?: Segment;
}

/**
 * `longtail.requeue`: a worker, or the trainer's own agent loop, hands unfinished samples in with their tokens. What
 * becomes of them is what a cut does: the group goes to the long-tail queue as a whole, finished samples and all.
 */
export class RequeueRequest {
  @IsId() job!: JobId;
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
  /** The samples, each with an answer of its own. */
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.page)
  @ValidateNested({ each: true })
  @Type(() => RequeuedSample)
  requests!: RequeuedSample[];
}
/** What became of one sample that was handed in. */
export interface RequeueResult {
  requestId: RequestId;
  /** `dropped`, `failed`: its group had ended before. Absent when there is an error. */
  state?: 'pending' | 'unfinished' | 'failed' | 'dropped';
  /** Why it was not taken. */
  error?: WireError;
}
export interface RequeueReply {
  /** One for each of the request, in order. */
  results: RequeueResult[];
}

/**
 * `longtail.drop`: groups of the queue that will never be trained (prompts without variance, for example): exactly one
 * of `groupIds` and `all`. Their payloads are deleted, and they count in `droppedGroups`.
 */
export class DropLongtailRequest {
  @IsId() job!: JobId;
  @IsEpoch() trainerEpoch!: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
  /** These groups. */
  @IsOptional()
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.groupsPerSubmit)
  @IsId({ each: true })
  groupIds?: GroupId[];
  /** All groups of the queue. */
  @IsOptional() @Equals(true) all?: true;
  /** Told with the events, and kept with the groups until they are deleted. */
  @MaxLength(256) reason!: string;
  /** Of the page before, with `all`: groups that came into the queue since the first page stay. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
}
export interface DropLongtailReply {
  /** Groups that were dropped. */
  dropped: GroupId[];
  /** Not in the queue: trained, dropped before, in a round, or never submitted. Nothing was done. */
  notQueued: GroupId[];
  /** Requests of these groups. */
  requests: Integer;
  /** Tokens thrown away with them. */
  tokens: Integer;
  /** There is more: send the same body with this cursor. */
  cursor?: Integer;
  stamp: Stamp;
}
