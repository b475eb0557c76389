import { Type } from 'class-transformer';
import { ArrayMaxSize, IsArray, IsIn, IsInt, IsOptional, Max, Min, ValidateNested } from 'class-validator';
import { IsScanCursor } from './cursors';
import { IsEpoch } from './epochs';
import {
  IsCorrelationId,
  IsId,
  type LeaseId,
  type RequestId,
  type ServerId,
  type WorkerId,
  type AttemptId,
  type Epoch,
  IsWorkerId,
} from './ids';
import { IsCounter } from './integers';
import { LIMITS } from './limits';

/** `worker.register`: a new epoch, which voids the one before with all its leases and attempts. */
export class RegisterWorkerRequest {
  @IsWorkerId() workerId!: WorkerId;
  /** Idempotency of this registration: a repeat gets the same epoch. */
  @IsId() registrationId!: string;
  /** Without a heartbeat for this long the epoch is expired, milliseconds; default 15,000. */
  @IsOptional() @IsInt() @Min(500) @Max(3_600_000) ttlMs?: number;
}
export interface RegisterWorkerReply {
  workerEpoch: Epoch;
  ttlMs: number;
  serverTimeMs: number;
}

/** `worker.heartbeat`: keeps all leases and attempts of the epoch. FENCED when the epoch is expired. */
export class WorkerHeartbeatRequest {
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
  /** Leases the worker holds. */
  @IsCounter(0) leaseCount!: number;
  /** Sum of the sequences of their leaseIds, modulo 2^40. */
  @IsCounter(0) leaseDigest!: number;
  /** Attempts (claimed or running requests) the worker holds. */
  @IsCounter(0) attemptCount!: number;
}
/** The counts as Redis has them; on a mismatch that stays, page through `worker.sync`. */
export interface WorkerHeartbeatReply {
  serverTimeMs: number;
  ttlMs: number;
  leaseCount: number;
  leaseDigest: number;
  attemptCount: number;
  /**
   * Another one than before: Redis was restarted or set back, and may have forgotten what it had granted. Page through
   * `worker.sync`, though the counts agree.
   */
  generation: string;
  /** Page through `worker.sync` now, even if all agrees: somebody reconciles a server (`server.reconcile`). */
  syncAsked?: boolean;
}

/** `worker.sync`: what Redis says this epoch holds, page by page. */
export class SyncWorkerRequest {
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
  @IsIn(['leases', 'attempts']) kind!: 'leases' | 'attempts';
  @IsOptional() @IsScanCursor() cursor?: string;
}
export interface SyncWorkerReply {
  /** leaseIds with the time of the grant, or requestIds (`attempt` set) with the time of the claim. */
  items: { id: string; attempt?: AttemptId; sinceMs: number }[];
  cursor?: string;
}

/** `worker.deregister`: gives the epoch up at once; what it still holds is returned. */
export class DeregisterWorkerRequest {
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
}
export interface DeregisterWorkerReply {
  deregistered: boolean;
}

/** A call of one that only routes, under the right of a lease. */
export class AbortedLease {
  @IsCorrelationId() leaseId!: LeaseId;
  /** Of the acquire. */
  @IsCorrelationId() requestId!: RequestId;
}
/**
 * `worker.<workerId>.abort`, sent to the worker, at least once: stop these attempts on their engines and end them with
 * `request.fail`; stop the calls under these leases on their engines and end them with `lb.release`.
 */
export class AbortAttemptsCommand {
  @IsEpoch() workerEpoch!: Epoch;
  @IsIn(['cut', 'abort', 'move', 'expired']) cause!: 'cut' | 'abort' | 'move' | 'expired';
  @IsArray() @ArrayMaxSize(LIMITS.page) attempts!: { requestId: RequestId; attempt: AttemptId }[];
  /** Absent when there are none. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(LIMITS.page)
  @ValidateNested({ each: true })
  @Type(() => AbortedLease)
  leases?: AbortedLease[];
}

/** A call under a lease that is to go on elsewhere. */
export class MovedLease {
  @IsCorrelationId() leaseId!: LeaseId;
  @IsId() targetServerId!: ServerId;
  @IsOptional() @IsEpoch() targetEpoch?: Epoch;
}
/**
 * `worker.<workerId>.move`, sent to one that only routes: end these calls with their tokens, move their leases with
 * `lb.transfer`, and go on there. A call that ends first is released as always. Said again until it is done, for a while.
 */
export class MoveLeasesCommand {
  @IsEpoch() workerEpoch!: Epoch;
  @IsId() planId!: string;
  @IsArray() @ArrayMaxSize(LIMITS.page) @ValidateNested({ each: true }) @Type(() => MovedLease) leases!: MovedLease[];
}
