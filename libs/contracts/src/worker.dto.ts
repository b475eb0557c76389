import { MoveTarget, type PageReply, WorkerRequest } from './common.dto';
import { IsIn, IsOptional } from 'class-validator';
import { LIMITS } from './limits';
import {
  IsCorrelationId,
  IsCounter,
  IsEpoch,
  IsId,
  IsList,
  IsListOf,
  IsScanCursor,
  IsWithin,
  IsWorkerId,
} from './rules';
import type { AttemptId, Epoch, Integer, LeaseId, RequestId, ServerId, WorkerId } from './scalars';

/** `worker.register`: starts a new epoch; the previous one expires with all its leases and attempts. */
export class RegisterWorkerRequest {
  /** Id of the worker, chosen by the worker; the same after restarts. */
  @IsWorkerId() workerId!: WorkerId;
  /** Id of the registration, for idempotency: a repeat gets the same epoch. */
  @IsId() registrationId!: string;
  /**
   * Time without a heartbeat after which the epoch expires, milliseconds.
   * @default 15000
   */
  @IsOptional() @IsWithin(500, 3_600_000) ttlMs?: Integer;
}
export interface RegisterWorkerReply {
  /** Send this with every later call of the worker. */
  workerEpoch: Epoch;
  /** Time without a heartbeat after which the epoch expires, milliseconds. */
  ttlMs: Integer;
  /** Time of Redis, milliseconds since 1970. */
  serverTimeMs: Integer;
}

/** Tokens that the calls of a worker get from one server: a better sign of life than the health of its engine. */
export class ServerSigns {
  /** The server. */
  @IsId() serverId!: ServerId;
  /** Epoch of the server, as in the leases of the calls. */
  @IsEpoch() epoch!: Epoch;
  /** Tokens received since the heartbeat before. */
  @IsCounter(0) tokens!: Integer;
  /** Time in which streams of the worker have run since their last token, milliseconds; 0 if tokens were received. */
  @IsCounter(0) silentMs!: Integer;
  /** Tokens of the longest prompt among the streams without a token: its processing explains a silence. */
  @IsOptional() @IsCounter(0) contextTokens?: Integer;
}
/** `worker.heartbeat`: renews all leases and attempts of the epoch. FENCED if the epoch has expired. */
export class WorkerHeartbeatRequest extends WorkerRequest {
  /** Number of leases that the worker holds. */
  @IsCounter(0) leaseCount!: Integer;
  /** Sum of the sequences of their leaseIds, modulo 2^40. */
  @IsCounter(0) leaseDigest!: Integer;
  /** Number of attempts (claimed or running requests) of the worker. */
  @IsCounter(0) attemptCount!: Integer;
  /** Servers on which the worker has streams; of more than fit, others in each heartbeat. */
  @IsOptional() @IsListOf(() => ServerSigns, LIMITS.page) servers?: ServerSigns[];
}
/** Counts in Redis; on a lasting mismatch, page through `worker.sync`. */
export interface WorkerHeartbeatReply extends Pick<RegisterWorkerReply, 'ttlMs' | 'serverTimeMs'> {
  /** Leases of the worker in Redis. */
  leaseCount: Integer;
  /** Sum of the sequences of their leaseIds, modulo 2^40. */
  leaseDigest: Integer;
  /** Attempts of the worker in Redis. */
  attemptCount: Integer;
  /**
   * If it has changed, Redis was restarted or has lost its last changes, and may have lost leases: page through
   * `worker.sync`, even if the counts agree.
   */
  generation: string;
  /** Page through `worker.sync` now, even if the counts agree: a server is being reconciled (`server.reconcile`). */
  syncAsked?: boolean;
}

/** `worker.sync`: lists the leases or attempts of this epoch in Redis, page by page. */
export class SyncWorkerRequest extends WorkerRequest {
  /** Kind of the items to list. */
  @IsIn(['leases', 'attempts']) kind!: 'leases' | 'attempts';
  /** Cursor of the previous page. */
  @IsOptional() @IsScanCursor() cursor?: string;
}
/** A lease or an attempt of a worker. */
export interface HeldItem {
  /** leaseId, or requestId. */
  id: string;
  /** Set with a requestId. */
  attempt?: AttemptId;
  /** Time of the grant or claim, milliseconds since 1970. */
  sinceMs: Integer;
}
export interface SyncWorkerReply extends PageReply {
  /** leaseIds with the time of the grant, or requestIds (`attempt` set) with the time of the claim. */
  items: HeldItem[];
}

/** `worker.deregister`: ends the epoch at once; its leases and attempts are returned. */
export class DeregisterWorkerRequest extends WorkerRequest {}
export interface DeregisterWorkerReply {
  /** False if the epoch had ended before. */
  deregistered: boolean;
}

/** A lease of a caller that only routes. */
export class AbortedLease {
  @IsCorrelationId() leaseId!: LeaseId;
  /** Request that the acquire named. */
  @IsCorrelationId() requestId!: RequestId;
}
/** An attempt to stop. */
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
   * Why: its group was `cut` or the weights of the pool change (`cut` too: continue with the tokens), it was aborted
   * (`abort`), it is being moved (`move`), or its worker epoch has `expired`.
   */
  @IsIn(['cut', 'abort', 'move', 'expired']) cause!: 'cut' | 'abort' | 'move' | 'expired';
  /** The attempts. */
  @IsList(LIMITS.page) attempts!: AbortedAttempt[];
  /** The leases; absent if there are none. */
  @IsOptional() @IsListOf(() => AbortedLease, LIMITS.page) leases?: AbortedLease[];
}

/** A lease to move to another server. */
export class MovedLease extends MoveTarget {
  @IsCorrelationId() leaseId!: LeaseId;
}
/**
 * `worker.<workerId>.move`, sent to a caller that only routes: end these calls with their tokens, move their leases
 * with `lb.transfer`, and continue on the new servers. Release a call that ends before as usual. The command is
 * repeated until the lease has moved or ended, or until the deadline.
 */
export class MoveLeasesCommand {
  @IsEpoch() workerEpoch!: Epoch;
  /** The plan of the moves. */
  @IsId() planId!: string;
  /** The leases. */
  @IsListOf(() => MovedLease, LIMITS.page) leases!: MovedLease[];
}
