import {
  ArrayMaxSize,
  ArrayMinSize,
  Equals,
  IsArray,
  IsIn,
  IsInt,
  IsOptional,
  Max,
  MaxLength,
  Min,
} from 'class-validator';
import {
  IsCorrelationId,
  IsId,
  type GroupId,
  type JobId,
  type LeaseId,
  type RequestId,
  type RoundId,
  type ServerId,
  type WorkerId,
  IsWorkerId,
} from './ids';
import { IsCounter, type Integer } from './integers';
import { LIMITS } from './limits';
import type { Segment } from './segment.dto';

export const ABORT_SCOPES = ['sample', 'group'] as const;
/** What an abort of one request takes with it: that `sample` alone, or its whole `group`. */
export type AbortScope = (typeof ABORT_SCOPES)[number];

/**
 * `request.abort`: stops what exactly one selector means: `requestIds`, `sessionId`, `groupId` (with `job`),
 * `workerId`, `serverId`, `roundId` (with `job`), `job` alone, or `all`. What comes after the call is not meant, except
 * requests and groups named here that are not known yet: they end `dropped` when they come within the life of the
 * tombstone. An acquire that waits for a server is answered ABORTED. One that comes later is not meant: a caller that
 * uses one requestId for all turns of a trajectory may go on, unless `refuseAcquiresMs` is given.
 */
export class AbortRequestsRequest {
  /** Idempotency of this call; the next page and a later look have the same. */
  @IsId() abortId!: string;
  /** Requests of rounds, or the requestIds of acquires by callers that only route. */
  @IsOptional()
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.page)
  @IsCorrelationId({ each: true })
  requestIds?: RequestId[];
  /** With `requestIds`: acquires of those that nobody knows are answered ABORTED for this long, milliseconds. */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.refuseAcquiresMs) refuseAcquiresMs?: Integer;
  /**
   * What goes with a request of a round that `requestIds`, `sessionId`, `workerId` or `serverId` means. `sample`:
   * nothing; its group goes on while it has `minSamples` others, else it is dropped. `group`: its whole group.
   * Default: `abortScope` of its round.
   */
  @IsOptional() @IsIn(ABORT_SCOPES) scope?: AbortScope;
  /** The requests whose acquires named this session. */
  @IsOptional() @IsCorrelationId() sessionId?: string;
  /** The requests of this group; with `job`. */
  @IsOptional() @IsId() groupId?: GroupId;
  /** The requests that this worker has. */
  @IsOptional() @IsWorkerId() workerId?: WorkerId;
  /** The requests that run on this server. */
  @IsOptional() @IsId() serverId?: ServerId;
  /** The requests of this round; with `job`. */
  @IsOptional() @IsId() roundId?: RoundId;
  /** The job of `groupId` or `roundId`; alone: all its requests. */
  @IsOptional() @IsId() job?: JobId;
  /** All requests of the pool. */
  @IsOptional() @Equals(true) all?: true;
  /**
   * Wait at most this long for the confirmations of the page, milliseconds.
   * @default 0
   */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.waitMs) waitMs?: Integer;
  /** Kept with what was dropped. */
  @IsOptional() @MaxLength(256) reason?: string;
  /** Of the page before. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
  /**
   * Results in the page.
   * @default 128
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.page) limit?: Integer;
}

/** What became of one request that an abort means. */
export interface AbortResult {
  requestId: RequestId;
  /**
   * `aborted`: its holder has said that the engine has stopped it (or nobody had it). `aborting`: not confirmed yet; it
   * is said again until it is. `already-finished`: it had ended, nothing was done. `not-found`: unknown, nothing was
   * done.
   */
  outcome: 'aborted' | 'aborting' | 'already-finished' | 'not-found';
  /** Tokens made in all attempts. */
  tokenCount?: Integer;
  /** The tokens, by reference; readable for the life of the answer. */
  segments?: Segment[];
  /** There are too many for this message, and `segments` is empty: read them with `request.segments`. */
  segmentsFollow?: true;
  /** Set when this is a lease of a caller that only routes. */
  leaseId?: LeaseId;
  /** The holder has not confirmed within the deadline, and held no lease: the counts have ended it without. */
  unconfirmed?: boolean;
  /** The holder has not confirmed within the deadline: the epoch of the server it ran on is expired. */
  fenced?: boolean;
}
export interface AbortRequestsReply {
  /** That of the request. */
  abortId: string;
  /** One for each request of the page. */
  results: AbortResult[];
  /** There is more: send the same body with this cursor. */
  cursor?: Integer;
}
