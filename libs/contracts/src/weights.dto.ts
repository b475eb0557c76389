import { IsIn, IsInt, IsOptional, Max, Min } from 'class-validator';
import { IsScanCursor } from './cursors';
import { IsEpoch } from './epochs';
import { IsId, type JobId, type ServerId, type Epoch } from './ids';
import { LIMITS } from './limits';
import type { ServerState } from './server.dto';
import { IsStamp, type Stamp } from './stamp';
import type { Integer } from './integers';

export const WEIGHT_SYNC_MODES = ['abort', 'wait', 'keep'] as const;
/**
 * What becomes of running requests while the weights change. `abort`: stopped with their tokens, and run again after
 * it;
 * `wait`: waited for; `keep`: they go on, and their tokens are of both versions (`toWeightVersion` of the segment).
 */
export type WeightSyncMode = (typeof WEIGHT_SYNC_MODES)[number];

/**
 * `weights.begin`: from here on no lease is granted and no request claimed until `weights.commit`, `weights.rollback`
 * or the deadline, which rolls back. Acquires and claims are answered POOL_PAUSED: at once, or when their `waitMs` is
 * over.
 */
export class BeginWeightsRequest {
  /** Idempotency of this change: a repeat answers how it stands. */
  @IsId() syncId!: string;
  /** Of the new weights; not below that of the pool. */
  @IsInt() @Min(0) @Max(1_000_000_000) version!: Integer;
  /** What becomes of running requests. */
  @IsIn(WEIGHT_SYNC_MODES) mode!: WeightSyncMode;
  /**
   * From now, milliseconds.
   * @default 120000
   */
  @IsOptional() @IsInt() @Min(1_000) @Max(3_600_000) deadlineMs?: Integer;
  /**
   * Answer when nothing runs any more, but after this at the latest, milliseconds. Not for `keep`.
   * @default 0
   */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.waitMs) waitMs?: Integer;
  /** With `trainerEpoch`: only this trainer, or one that took the job over, may end it. */
  @IsOptional() @IsId() job?: JobId;
  /** Epoch of the trainer of `job`. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}

class EndWeightsRequest {
  /** The change of weights. */
  @IsId() syncId!: string;
  /** Of the job it was begun for; absent: of the trainer that began it. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/**
 * `weights.commit`: the engines have the new weights. Servers that do not report the version are `quarantined`, and
 * told by `requiredWeightVersion` of their heartbeats' replies, until they do.
 */
export class CommitWeightsRequest extends EndWeightsRequest {}
/** `weights.rollback`: the pool goes on with the weights it had; servers that report the new ones are `quarantined`. */
export class RollbackWeightsRequest extends EndWeightsRequest {}

/** One change of the weights of a pool. */
export interface WeightSync {
  /** The change of weights. */
  syncId: string;
  /** It was begun for. */
  job?: JobId;
  /** Version of the new weights. */
  version: Integer;
  /** What becomes of running requests. */
  mode: WeightSyncMode;
  /** Version of the pool before. */
  fromVersion: Integer;
  /** How far it is. */
  state: 'begun' | 'committed' | 'rolled-back';
  /** Server time, milliseconds, as all three. */
  startedAtMs: Integer;
  /** When it is rolled back by itself. */
  deadlineAtMs: Integer;
  /** When it ended; absent before. */
  endedAtMs?: Integer;
  /** Why it ended: `asked` or `deadline`. */
  reason?: string;
  /** Leases that were still there: requests in flight. 0 = quiesced. */
  running: Integer;
  /** Servers that take leases, or will when the pool goes on. */
  servers: Integer;
  /** Those of them that report the version. */
  confirmedServers: Integer;
}
/** What `weights.begin`, `weights.commit` and `weights.rollback` answer. */
export interface WeightSyncReply extends WeightSync {
  stamp: Stamp;
}

/** `weights.status`: what changes just now, or how `syncId` stands; with `cursor` also one page of servers. */
export class WeightsStatusRequest {
  /** Answered for an hour after its end. */
  @IsOptional() @IsId() syncId?: string;
  /** `0` for the first page, then that of the page before. */
  @IsOptional() @IsScanCursor() cursor?: string;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
}
/** One server while the weights change. */
export interface WeightServer {
  serverId: ServerId;
  /** Epoch of the server. */
  epoch: Epoch;
  /** State of the server. */
  state: ServerState;
  /** As it reported it last. */
  weightVersion: Integer;
  /** Its leases. */
  inflight: Integer;
  /** Nothing is in flight on it. */
  quiesced: boolean;
  /** Its engine was paused for a change of weights, and not told to go on yet. Only of engines that can. */
  paused: boolean;
  /** It reports the version that is coming, or, without a change under way, the one of the pool. */
  confirmed: boolean;
}
/** The weights of a pool. */
export interface WeightsStatusReply {
  /** Committed last; absent before the first. */
  version?: Integer;
  /** The change under way, or the one that was asked for; absent without one. */
  sync?: WeightSync;
  /** One page of servers; empty without `cursor`. */
  servers: WeightServer[];
  /** Send it for the next page; absent at the end. */
  cursor?: string;
  stamp: Stamp;
}
