import { Equals, IsIn, IsOptional, MaxLength } from 'class-validator';
import type { NumberedPageReply } from './common.dto';
import { LIMITS } from './limits';
import type { SegmentList } from './segment.dto';
import { IsCorrelationId, IsCounter, IsId, IsList, IsWithin, IsWorkerId } from './rules';
import type { GroupId, Integer, JobId, LeaseId, RequestId, RoundId, ServerId, WorkerId } from './scalars';

export const ABORT_SCOPES = ['sample', 'group'] as const;
/** Scope of an abort of one request: that `sample` alone, or its whole `group`. */
export type AbortScope = (typeof ABORT_SCOPES)[number];

/**
 * `request.abort`: stops the requests of exactly one selector: `requestIds`, `sessionId`, `groupId` (with `job`),
 * `workerId`, `serverId`, `roundId` (with `job`), `job` alone, or `all`. Later requests are not affected, except
 * requests and groups that are named here and not known yet: they end `dropped` if they are submitted within ten
 * minutes. An acquire that waits for a server is answered ABORTED. Later acquires are not affected, because a caller
 * may use one requestId for all turns of a trajectory, unless `refuseAcquiresMs` is given.
 */
export class AbortRequestsRequest {
  /** Id of this abort, for idempotency; use the same for the next page and to read the result later. */
  @IsId() abortId!: string;
  /** Requests of rounds, or requestIds of acquires by callers that only route. */
  @IsOptional() @IsList(LIMITS.page, 1) @IsCorrelationId({ each: true }) requestIds?: RequestId[];
  /** With `requestIds`: acquires of unknown requests are answered ABORTED for this long, milliseconds. */
  @IsOptional() @IsWithin(1, LIMITS.refuseAcquiresMs) refuseAcquiresMs?: Integer;
  /**
   * Scope of an abort by `requestIds`, `sessionId`, `workerId` or `serverId`. `sample`: only the request; its group
   * continues while it has `minSamples` others, otherwise it is dropped. `group`: the whole group. Default:
   * `abortScope` of the round.
   */
  @IsOptional() @IsIn(ABORT_SCOPES) scope?: AbortScope;
  /** The requests whose acquires named this session. */
  @IsOptional() @IsCorrelationId() sessionId?: string;
  /** The requests of this group; with `job`. */
  @IsOptional() @IsId() groupId?: GroupId;
  /** The requests of this worker. */
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
  @IsOptional() @IsWithin(0, LIMITS.waitMs) waitMs?: Integer;
  /** Stored with the dropped requests. */
  @IsOptional() @MaxLength(256) reason?: string;
  /** Cursor of the previous page. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
  /**
   * Maximum results of the page.
   * @default 128
   */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}

/** Result for one aborted request. Its tokens are kept as long as this answer. */
export interface AbortResult extends Partial<SegmentList> {
  requestId: RequestId;
  /**
   * `aborted`: its worker has confirmed that the engine has stopped it, or no worker had it. `aborting`: not confirmed
   * yet; the command is repeated. `already-finished`: it had ended before. `not-found`: the request is unknown.
   */
  outcome: 'aborted' | 'aborting' | 'already-finished' | 'not-found';
  /** Tokens of all attempts. */
  tokenCount?: Integer;
  /** Lease, if the caller only routes. */
  leaseId?: LeaseId;
  /**
   * The worker has not confirmed within the deadline and had no lease: the request was ended without a confirmation.
   */
  unconfirmed?: boolean;
  /** The worker has not confirmed within the deadline: the epoch of its server was expired. */
  fenced?: boolean;
}
export interface AbortRequestsReply extends NumberedPageReply {
  /** Id of the abort, from the request. */
  abortId: string;
  /** One result for each request of the page. */
  results: AbortResult[];
}
