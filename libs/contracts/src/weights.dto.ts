import { type PageReply, type StampedReply } from './common.dto';
import { IsIn, IsOptional } from 'class-validator';
import { LIMITS } from './limits';
import type { ServerName, ServerStatus } from './server.dto';
import { IsEpoch, IsId, IsScanCursor, IsStamp, IsWithin } from './rules';
import type { Epoch, Integer, JobId, Stamp } from './scalars';

export const WEIGHT_SYNC_MODES = ['abort', 'wait', 'keep'] as const;
/**
 * Treatment of running requests during a change of weights. `abort`: requests are stopped, keep their tokens, and
 * continue afterwards. `wait`: the change waits for the requests. `keep`: requests continue, with tokens of both
 * versions (`toWeightVersion` of the segment).
 */
export type WeightSyncMode = (typeof WEIGHT_SYNC_MODES)[number];

/**
 * `weights.begin`: stops leases and claims until `weights.commit`, `weights.rollback` or the deadline. Acquires and
 * claims are answered POOL_PAUSED, at once or after `waitMs`. A repeat with the same syncId extends the deadline, for a
 * load that makes progress.
 *
 * The deadline rolls back. Running requests are stopped and keep their tokens. A server that was not reported since the
 * begin has unknown weights, and takes no leases until it is reported.
 */
export class BeginWeightsRequest {
  /** Id of the change, for idempotency. A repeat returns the present state, and may extend the deadline. */
  @IsId() syncId!: string;
  /** Version of the new weights; not below the version of the pool. */
  @IsWithin(0, 1_000_000_000) version!: Integer;
  /** Treatment of running requests. */
  @IsIn(WEIGHT_SYNC_MODES) mode!: WeightSyncMode;
  /**
   * Time until the rollback, milliseconds, from this call on.
   * @default 120000
   */
  @IsOptional() @IsWithin(1_000, 3_600_000) deadlineMs?: Integer;
  /**
   * Wait until no request runs, at most this long, milliseconds. Not for `keep`.
   * @default 0
   */
  @IsOptional() @IsWithin(0, LIMITS.waitMs) waitMs?: Integer;
  /** With `trainerEpoch`: only the present trainer of this job may end the change. */
  @IsOptional() @IsId() job?: JobId;
  /** Epoch of the trainer of `job`. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}

class EndWeightsRequest {
  /** The change of weights. */
  @IsId() syncId!: string;
  /** Epoch of the trainer of the job; absent: the epoch of `weights.begin`. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/**
 * `weights.commit`: the engines have the new weights. A server with another version is `quarantined` until it reports
 * the new version; replies of heartbeats have `requiredWeightVersion`.
 */
export class CommitWeightsRequest extends EndWeightsRequest {}
/** `weights.rollback`: the pool resumes with its previous weights. Servers with the new weights are `quarantined`. */
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
  /** Previous version of the pool; 0 before the first change. */
  fromVersion: Integer;
  /** State of the change. */
  state: 'begun' | 'committed' | 'rolled-back';
  /** Start of the change, time of Redis, milliseconds. */
  startedAtMs: Integer;
  /** Deadline of the change, time of Redis, milliseconds. */
  deadlineAtMs: Integer;
  /** End of the change, time of Redis, milliseconds; absent before. */
  endedAtMs?: Integer;
  /** Why the change ended: `asked` or `deadline`. */
  reason?: string;
  /** Leases in flight; 0 = quiesced. */
  running: Integer;
  /** Servers that take leases now, or when the pool resumes. */
  servers: Integer;
  /** Number of `servers` that report the version of the change. */
  confirmedServers: Integer;
}
/** Reply of `weights.begin`, `weights.commit` and `weights.rollback`. */
export interface WeightSyncReply extends WeightSync, StampedReply {}

/** `weights.status`: state of the present change, or of `syncId`; with `cursor` also one page of servers. */
export class WeightsStatusRequest {
  /** Id of a change that has ended less than an hour ago. */
  @IsOptional() @IsId() syncId?: string;
  /** `0` for the first page, then the cursor of the previous page. */
  @IsOptional() @IsScanCursor() cursor?: string;
  /**
   * Maximum servers of the page.
   * @default 128
   */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
  /** Stamp of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/** One server during a change of weights. */
export interface WeightServer extends ServerName, Pick<ServerStatus, 'weightVersion' | 'inflight'> {
  /** True if no request is in flight on the server. */
  quiesced: boolean;
  /** True if the engine is paused for a change of weights; false for an engine that cannot be paused. */
  paused: boolean;
  /** True if the server has the version of the change or, without a change, of the pool. */
  confirmed: boolean;
  /** The weights of the server are unknown, so it takes no leases until its version is reported. */
  weightsUnknown?: true;
}
/** The weights of a pool. */
export interface WeightsStatusReply extends StampedReply, PageReply {
  /** Last committed version; absent before the first commit. */
  version?: Integer;
  /** The requested change, or the present change; absent if there is none. */
  sync?: WeightSync;
  /** One page of servers; empty without `cursor`. */
  servers: WeightServer[];
}
