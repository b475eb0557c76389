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
import { IsCounter, type Integer } from './integers';
import { LIMITS } from './limits';

/** `worker.register`: a new epoch, which voids the one before with all its leases and attempts. */
export class RegisterWorkerRequest {
  /** Id of the worker, chosen by it; kept over its restarts. */
  @IsWorkerId() workerId!: WorkerId;
  /** Idempotency of this registration: a repeat gets the same epoch. */
  @IsId() registrationId!: string;
  /**
   * Without a heartbeat for this long the epoch is expired, milliseconds.
   * @default 15000
   */
  @IsOptional() @IsInt() @Min(500) @Max(3_600_000) ttlMs?: Integer;
}
export interface RegisterWorkerReply {
  /** To be sent with every later call of this worker. */
  workerEpoch: Epoch;
  /** Without a heartbeat for this long the epoch expires, milliseconds. */
  ttlMs: Integer;
  /** Time of Redis, milliseconds since 1970. */
  serverTimeMs: Integer;
}

/** `worker.heartbeat`: keeps all leases and attempts of the epoch. FENCED when the epoch is expired. */
export class WorkerHeartbeatRequest {
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
  /** Leases the worker holds. */
  @IsCounter(0) leaseCount!: Integer;
  /** Sum of the sequences of their leaseIds, modulo 2^40. */
  @IsCounter(0) leaseDigest!: Integer;
  /** Attempts (claimed or running requests) the worker holds. */
  @IsCounter(0) attemptCount!: Integer;
}
/** The counts as Redis has them; on a mismatch that stays, page through `worker.sync`. */
export interface WorkerHeartbeatReply {
  /** Time of Redis, milliseconds since 1970. */
  serverTimeMs: Integer;
  /** Without a heartbeat for this long the epoch expires, milliseconds. */
  ttlMs: Integer;
  /** Leases that Redis says the worker holds. */
  leaseCount: Integer;
  /** Sum of the sequences of their leaseIds, modulo 2^40. */
  leaseDigest: Integer;
  /** Attempts that Redis says the worker holds. */
  attemptCount: Integer;
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
  /** What is listed. */
  @IsIn(['leases', 'attempts']) kind!: 'leases' | 'attempts';
  /** Of the page before. */
  @IsOptional() @IsScanCursor() cursor?: string;
}
/** A lease or an attempt of a worker. */
export interface HeldItem {
  /** leaseId, or requestId. */
  id: string;
  /** Set with a requestId. */
  attempt?: AttemptId;
  /** When it was granted or claimed, milliseconds since 1970. */
  sinceMs: Integer;
}
export interface SyncWorkerReply {
  /** leaseIds with the time of the grant, or requestIds (`attempt` set) with the time of the claim. */
  items: HeldItem[];
  /** Send it for the next page; absent at the end. */
  cursor?: string;
}

/** `worker.deregister`: gives the epoch up at once; what it still holds is returned. */
export class DeregisterWorkerRequest {
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
}
export interface DeregisterWorkerReply {
  /** False when the epoch had ended before. */
  deregistered: boolean;
}

/** A call of one that only routes, under the right of a lease. */
export class AbortedLease {
  @IsCorrelationId() leaseId!: LeaseId;
  /** Of the acquire. */
  @IsCorrelationId() requestId!: RequestId;
}
/** An attempt that is to be ended. */
export interface AbortedAttempt {
  requestId: RequestId;
  attempt: AttemptId;
}
/**
 * `worker.<workerId>.abort`, sent to the worker, at least once: stop these attempts on their engines and end them with
 * `request.fail`; stop the calls under these leases on their engines and end them with `lb.release`.
 */
export class AbortAttemptsCommand {
  @IsEpoch() workerEpoch!: Epoch;
  /**
   * Why: its group was `cut`, somebody asked for an `abort`, it is to `move`, or its worker epoch has `expired`.
   */
  @IsIn(['cut', 'abort', 'move', 'expired']) cause!: 'cut' | 'abort' | 'move' | 'expired';
  /** The attempts. */
  @IsArray() @ArrayMaxSize(LIMITS.page) attempts!: AbortedAttempt[];
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
  /** Where it goes on. */
  @IsId() targetServerId!: ServerId;
  /** Only while this is the epoch of the target. */
  @IsOptional() @IsEpoch() targetEpoch?: Epoch;
}
/**
 * `worker.<workerId>.move`, sent to one that only routes: end these calls with their tokens, move their leases with
 * `lb.transfer`, and go on there. A call that ends first is released as always. Said again until it is done, for a
 * while.
 */
export class MoveLeasesCommand {
  @IsEpoch() workerEpoch!: Epoch;
  /** The plan that they are part of. */
  @IsId() planId!: string;
  /** The leases. */
  @IsArray() @ArrayMaxSize(LIMITS.page) @ValidateNested({ each: true }) @Type(() => MovedLease) leases!: MovedLease[];
}
