import { Equals, IsIn, IsOptional, MaxLength } from 'class-validator';
import type { NumberedPageReply } from './common.dto';
import { LIMITS } from './limits';
import type { SegmentList } from './segment.dto';
import { IsCorrelationId, IsCounter, IsId, IsList, IsWithin, IsWorkerId } from './rules';
import type { GroupId, Integer, JobId, LeaseId, RequestId, RoundId, ServerId, WorkerId } from './scalars';

export const ABORT_SCOPES = ['sample', 'group'] as const;
/** Scope of an abort of one request: the `sample` alone, or the whole `group` of the sample. */
export type AbortScope = (typeof ABORT_SCOPES)[number];

/**
 * `request.abort`: stops the requests of exactly one selector: `requestIds`, `sessionId`, `groupId` (with `job`),
 * `workerId`, `serverId`, `roundId` (with `job`), `job` alone, or `all`. Later requests are not affected. Exception: an
 * unknown request or group that the abort names ends `dropped` if a trainer submits it within ten minutes. An acquire
 * that waits for a server is answered ABORTED. Later acquires are refused only with `refuseAcquiresMs`, because a
 * caller may use one requestId for all turns of a trajectory.
 */
export class AbortRequestsRequest {
  /** Id of this abort, for idempotency. The same id reads the next page, and later the result. */
  @IsId() abortId!: string;
  /** Requests of rounds, or requestIds of acquires by callers that only route. */
  @IsOptional() @IsList(LIMITS.page, 1) @IsCorrelationId({ each: true }) requestIds?: RequestId[];
  /** With `requestIds`: time in which acquires of unknown requests are answered ABORTED, milliseconds. */
  @IsOptional() @IsWithin(1, LIMITS.refuseAcquiresMs) refuseAcquiresMs?: Integer;
  /**
   * Scope of an abort by `requestIds`, `sessionId`, `workerId` or `serverId`. `sample`: only the request. A group with
   * fewer than `minSamples` other samples is dropped. `group`: the whole group. Default: `abortScope` of the round.
   */
  @IsOptional() @IsIn(ABORT_SCOPES) scope?: AbortScope;
  /** The requests that acquired leases with this session. */
  @IsOptional() @IsCorrelationId() sessionId?: string;
  /** The requests of this group; with `job`. */
  @IsOptional() @IsId() groupId?: GroupId;
  /** The requests of this worker. */
  @IsOptional() @IsWorkerId() workerId?: WorkerId;
  /** The requests that run on this server. */
  @IsOptional() @IsId() serverId?: ServerId;
  /** The requests of this round; with `job`. */
  @IsOptional() @IsId() roundId?: RoundId;
  /** The job of `groupId` or `roundId`. Without both: all requests of the job. */
  @IsOptional() @IsId() job?: JobId;
  /** All requests of the pool. */
  @IsOptional() @Equals(true) all?: true;
  /**
   * Wait at most this long for the confirmations of the page, milliseconds.
   * @default 0
   */
  @IsOptional() @IsWithin(0, LIMITS.waitMs) waitMs?: Integer;
  /** Reason, which is stored with the dropped requests. */
  @IsOptional() @MaxLength(256) reason?: string;
  /** Cursor of the previous page. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
  /**
   * Maximum results of the page.
   * @default 128
   */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}

/** Result for one aborted request. The tokens of the request are kept as long as this answer. */
export interface AbortResult extends Partial<SegmentList> {
  requestId: RequestId;
  /**
   * `aborted`: the worker has confirmed the stop in the engine, or no worker had the request. `aborting`: not confirmed
   * yet; the command is repeated. `already-finished`: the request had ended before. `not-found`: the request is
   * unknown.
   */
  outcome: 'aborted' | 'aborting' | 'already-finished' | 'not-found';
  /** Tokens of all attempts of the request. */
  tokenCount?: Integer;
  /** Lease of the request, for a caller that only routes. */
  leaseId?: LeaseId;
  /**
   * The worker has not confirmed within the deadline and had no lease: the request was ended without a confirmation.
   */
  unconfirmed?: boolean;
  /** The worker has not confirmed within the deadline, so the epoch of the server was expired. */
  fenced?: boolean;
}
export interface AbortRequestsReply extends NumberedPageReply {
  /** Id of the abort, from the request. */
  abortId: string;
  /** One result for each request of the page. */
  results: AbortResult[];
}
