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

/** `worker.register`: starts a new epoch of a worker. The previous epoch expires with all its leases and attempts. */
export class RegisterWorkerRequest {
  /** Id of the worker, chosen by the worker, and the same after restarts. */
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
  /** Epoch of the worker, for every later call. */
  workerEpoch: Epoch;
  /** Time without a heartbeat after which the epoch expires, milliseconds. */
  ttlMs: Integer;
  /** Time of Redis, milliseconds since 1970. */
  serverTimeMs: Integer;
}

/** Tokens that a worker receives from one server. Tokens show better than a probe that the engine works. */
export class ServerSigns {
  /** Id of the server. */
  @IsId() serverId!: ServerId;
  /** Epoch of the server, as in the leases of the calls. */
  @IsEpoch() epoch!: Epoch;
  /** Tokens received since the previous heartbeat. */
  @IsCounter(0) tokens!: Integer;
  /**
   * Time that streams of the worker have run since the last token of the server, milliseconds; 0 if tokens were
   * received.
   */
  @IsCounter(0) silentMs!: Integer;
  /** Tokens of the longest prompt among the streams without a token. A long prefill explains a silence. */
  @IsOptional() @IsCounter(0) contextTokens?: Integer;
  /**
   * Mean tokens of an event in the last stream since the previous heartbeat that was long enough to tell, if the events
   * did not come as asked for by `stream_interval`. 0: they came as asked. Absent: no such stream.
   */
  @IsOptional() @IsCounter(0) observedStreamInterval?: Integer;
}
/** `worker.heartbeat`: renews all leases and attempts of the epoch. FENCED if the epoch has expired. */
export class WorkerHeartbeatRequest extends WorkerRequest {
  /** Number of leases that the worker holds. */
  @IsCounter(0) leaseCount!: Integer;
  /** Sum of the sequences of the leaseIds, modulo 2^40. */
  @IsCounter(0) leaseDigest!: Integer;
  /** Number of attempts (claimed or running requests) of the worker. */
  @IsCounter(0) attemptCount!: Integer;
  /** Servers on which the worker has streams. If there are too many, each heartbeat has different servers. */
  @IsOptional() @IsListOf(() => ServerSigns, LIMITS.page) servers?: ServerSigns[];
}
/** Counts in Redis. After a lasting difference, page through `worker.sync`. */
export interface WorkerHeartbeatReply extends Pick<RegisterWorkerReply, 'ttlMs' | 'serverTimeMs'> {
  /** Leases of the worker in Redis. */
  leaseCount: Integer;
  /** Sum of the sequences of the leaseIds, modulo 2^40. */
  leaseDigest: Integer;
  /** Attempts of the worker in Redis. */
  attemptCount: Integer;
  /**
   * Pool generation. Another generation shows that Redis was restarted or set back and may have lost leases: then page
   * through `worker.sync`, even if the counts agree.
   */
  generation: string;
  /**
   * Page through `worker.sync` now, even if the counts agree, because a server is being reconciled
   * (`server.reconcile`).
   */
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
  /** Id of the lease or request. */
  id: string;
  /** The attempt; absent for a lease. */
  attempt?: AttemptId;
  /** Time of the grant or claim, milliseconds since 1970. */
  sinceMs: Integer;
}
export interface SyncWorkerReply extends PageReply {
  /** The leases or attempts of the page. */
  items: HeldItem[];
}

/** `worker.deregister`: ends the epoch at once. The leases and attempts of the epoch are returned. */
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
 * `worker.<workerId>.abort`, sent to the worker at least once. The worker stops the attempts on their engines and ends
 * them with `request.fail`. The worker also stops the calls of the leases, and ends the leases with `lb.release`.
 */
export class AbortAttemptsCommand {
  @IsEpoch() workerEpoch!: Epoch;
  /**
   * Reason of the command. `cut`: the group was cut, or the weights of the pool change. `abort`: the request was
   * aborted. `move`: the request is being moved. `expired`: the worker epoch has expired.
   */
  @IsIn(['cut', 'abort', 'move', 'expired']) cause!: 'cut' | 'abort' | 'move' | 'expired';
  /** Attempts to stop. */
  @IsList(LIMITS.page) attempts!: AbortedAttempt[];
  /** Leases to end; absent if there are none. */
  @IsOptional() @IsListOf(() => AbortedLease, LIMITS.page) leases?: AbortedLease[];
}

/** A lease to move to another server. */
export class MovedLease extends MoveTarget {
  @IsCorrelationId() leaseId!: LeaseId;
}
/**
 * `worker.<workerId>.move`, sent to a caller that only routes. The caller stops the calls, keeps the tokens, moves the
 * leases with `lb.transfer`, and continues on the new servers. Calls that end before are released as usual. The command
 * is repeated until the lease has moved or ended, or until the deadline.
 */
export class MoveLeasesCommand {
  @IsEpoch() workerEpoch!: Epoch;
  /** The plan of the moves. */
  @IsId() planId!: string;
  /** Leases to move. */
  @IsListOf(() => MovedLease, LIMITS.page) leases!: MovedLease[];
}
