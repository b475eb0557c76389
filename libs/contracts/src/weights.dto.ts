import { type PageReply, type StampedReply } from './common.dto';
import { IsIn, IsOptional } from 'class-validator';
import { LIMITS } from './limits';
import type { ServerName, ServerStatus } from './server.dto';
import { IsEpoch, IsId, IsScanCursor, IsStamp, IsWithin } from './rules';
import type { Epoch, Integer, JobId, Stamp } from './scalars';

export const WEIGHT_SYNC_MODES = ['abort', 'wait', 'keep'] as const;
/**
 * Treatment of running requests during a change of weights. `abort`: they are stopped with their tokens and run again
 * afterwards; `wait`: they are awaited; `keep`: they continue, and their tokens are from both versions
 * (`toWeightVersion` of the segment).
 */
export type WeightSyncMode = (typeof WEIGHT_SYNC_MODES)[number];

/**
 * `weights.begin`: stops leases and claims until `weights.commit`, `weights.rollback` or the deadline, which rolls
 * back. At the deadline requests that run are stopped, with their tokens, and the weights of servers that were not
 * reported since the begin are unknown: such servers take no leases until they are reported. A repeat with the same
 * syncId extends the deadline, for a load that makes progress. Acquires and claims are answered POOL_PAUSED: at once,
 * or after their `waitMs`.
 */
export class BeginWeightsRequest {
  /** Id of the change, for idempotency: a repeat returns its present state, and may make its deadline later. */
  @IsId() syncId!: string;
  /** Version of the new weights; not below the version of the pool. */
  @IsWithin(0, 1_000_000_000) version!: Integer;
  /** Treatment of running requests. */
  @IsIn(WEIGHT_SYNC_MODES) mode!: WeightSyncMode;
  /**
   * Time until the rollback, milliseconds; in a repeat from the repeat on.
   * @default 120000
   */
  @IsOptional() @IsWithin(1_000, 3_600_000) deadlineMs?: Integer;
  /**
   * Wait until no request runs, at most this long, milliseconds. Not for `keep`.
   * @default 0
   */
  @IsOptional() @IsWithin(0, LIMITS.waitMs) waitMs?: Integer;
  /** With `trainerEpoch`: only this trainer, or a trainer that took the job over, may end the change. */
  @IsOptional() @IsId() job?: JobId;
  /** Epoch of the trainer of `job`. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}

class EndWeightsRequest {
  /** The change of weights. */
  @IsId() syncId!: string;
  /** Epoch of the trainer of the job; absent: the epoch that began the change. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/**
 * `weights.commit`: the engines have the new weights. Servers that do not report the version are `quarantined` until
 * they do; the replies of their heartbeats have `requiredWeightVersion`.
 */
export class CommitWeightsRequest extends EndWeightsRequest {}
/**
 * `weights.rollback`: the pool resumes with its previous weights; servers that report the new ones are `quarantined`.
 */
export class RollbackWeightsRequest extends EndWeightsRequest {}

/** One change of the weights of a pool. */
export interface WeightSync {
  /** The change of weights. */
  syncId: string;
  /** Job of the change. */
  job?: JobId;
  /** Version of the new weights. */
  version: Integer;
  /** Treatment of running requests. */
  mode: WeightSyncMode;
  /** Version of the pool before; 0 before its first. */
  fromVersion: Integer;
  /** State of the change. */
  state: 'begun' | 'committed' | 'rolled-back';
  /** Start, time of Redis, milliseconds, as the next two. */
  startedAtMs: Integer;
  /** Time of the automatic rollback. */
  deadlineAtMs: Integer;
  /** End; absent before. */
  endedAtMs?: Integer;
  /** Why it ended: `asked` or `deadline`. */
  reason?: string;
  /** Leases, that is requests in flight. 0 = quiesced. */
  running: Integer;
  /** Servers that take leases, or will when the pool resumes. */
  servers: Integer;
  /** How many of `servers` report the version of the change. */
  confirmedServers: Integer;
}
/** Reply of `weights.begin`, `weights.commit` and `weights.rollback`. */
export interface WeightSyncReply extends WeightSync, StampedReply {}

/** `weights.status`: state of the present change, or of `syncId`; with `cursor` also one page of servers. */
export class WeightsStatusRequest {
  /** A change; available for an hour after its end. */
  @IsOptional() @IsId() syncId?: string;
  /** `0` for the first page, then the cursor of the previous page. */
  @IsOptional() @IsScanCursor() cursor?: string;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/** One server during a change of weights. */
export interface WeightServer extends ServerName, Pick<ServerStatus, 'weightVersion' | 'inflight'> {
  /** No request is in flight on it. */
  quiesced: boolean;
  /** The engine is paused for a change of weights. Only for engines that can be paused. */
  paused: boolean;
  /** The server reports the coming version, or, without a change, the version of the pool. */
  confirmed: boolean;
  /** The weights of the server are unknown, so it takes no leases until its version is reported. */
  weightsUnknown?: true;
}
/** The weights of a pool. */
export interface WeightsStatusReply extends StampedReply, PageReply {
  /** Last committed version; absent before the first commit. */
  version?: Integer;
  /** The present change, or the requested one; absent without one. */
  sync?: WeightSync;
  /** One page of servers; empty without `cursor`. */
  servers: WeightServer[];
}
