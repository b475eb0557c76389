import { IsIn, IsOptional, MaxLength } from 'class-validator';
import { AcquireItem } from './acquire.dto';
import { WorkerRequest } from './common.dto';
import type { Decision } from './decision.dto';
import type { WireError } from './errors';
import { LIMITS } from './limits';
import type { ServerName, ServerStatus } from './server.dto';
import { IsCorrelationId, IsEpoch, IsId, IsListOf, IsWithin } from './rules';
import type { Epoch, Integer, LeaseId, ServerId } from './scalars';

/** A server on which leases were granted. */
export interface GrantedServer extends Pick<
  ServerStatus,
  'epoch' | 'endpoint' | 'dialect' | 'model' | 'weightVersion'
> {
  /**
   * Unique name of the weights of the server. A caller of the engine adds this name to `cache_salt` (vLLM) or
   * `extra_key` (SGLang), so that the engine uses no prefix cache entry of other weights. Absent if the engine has no
   * salts.
   */
  cacheSalt?: string;
  /** Tokens of one event that the engine is asked for: `streamInterval` of the pool, if it is set. */
  streamInterval?: Integer;
}
/** A granted lease: the right to run one request on a server. */
export interface LeaseGrant extends GrantedServer {
  leaseId: LeaseId;
  serverId: ServerId;
  /** Data-parallel rank of the session on this server. */
  dpRank?: Integer;
  /** How the server was chosen. */
  decision: Decision;
}

/**
 * `lb.acquire-many`: many acquires, which never wait (`waitMs` of each item must be absent or 0). An item for which the
 * reply has no room is answered REPLY_FULL: send the item again for the full answer. `details.granted` is true if the
 * caller already holds the lease of the item.
 */
export class AcquireManyRequest extends WorkerRequest {
  /** The acquires, each with a different acquireId. */
  @IsListOf(() => AcquireItem, LIMITS.acquiresPerCall, 1) acquires!: AcquireItem[];
}
/** A granted acquire. */
export interface GrantedItem
  extends Pick<LeaseGrant, 'leaseId' | 'serverId' | 'dpRank'>, Pick<RefusedItem, 'acquireId'> {
  /** How the server was chosen; only with `explain`. */
  decision?: Decision;
}
/** A refused acquire. */
export interface RefusedItem {
  /** Id of the acquire, from the request. */
  acquireId: string;
  /** Why there is no lease. */
  error: WireError;
}
export interface AcquireManyReply {
  /** The servers of `leases`, each once. */
  servers: Record<ServerId, GrantedServer>;
  /** Answers in the order of the request. */
  leases: (GrantedItem | RefusedItem)[];
}

/**
 * `lb.transfer`: moves a live lease and its session to another server, atomically. The lease keeps its id and holder.
 * The caller ends the call on the old server. The reply is the reply of an acquire, with the branch `transferred`.
 * After an error nothing is changed. Errors: LEASE_NOT_FOUND, FENCED, SERVER_NOT_FOUND, SERVER_NOT_READY, SERVER_FULL,
 * SERVER_UNSUITABLE, POOL_PAUSED, VALIDATION_FAILED (the lease is already on this server).
 */
export class TransferLeaseRequest extends WorkerRequest {
  /** Id of the transfer, for idempotency: a repeat gets the first answer for 120 s. */
  @IsId() transferId!: string;
  /** The lease; exactly one of leaseId and acquireId. */
  @IsOptional() @IsCorrelationId() leaseId?: LeaseId;
  /** The acquire that the lease was granted to. */
  @IsOptional() @IsId() acquireId?: string;
  /** The server that gets the lease. */
  @IsId() targetServerId!: ServerId;
  /** Required epoch of the target. */
  @IsOptional() @IsEpoch() targetEpoch?: Epoch;
  /** Text for the log. */
  @IsOptional() @MaxLength(256) reason?: string;
}

export const RELEASE_OUTCOMES = ['finished', 'failed', 'rejected', 'aborted', 'unclaimed', 'busy'] as const;
/**
 * How the call under a lease ended. `failed`: the stream broke, or the engine answered 500; the failure counts against
 * the server. `busy`: the engine could not serve now (429, 503, no connection), and gets no leases for `retryAfterMs`.
 * `rejected`: the engine refused the request (4xx); this does not count against the server. `unclaimed`: the worker
 * does not hold the lease.
 */
export type ReleaseOutcome = (typeof RELEASE_OUTCOMES)[number];

/** One lease to release. */
export class ReleaseItem {
  /** The lease; exactly one of leaseId and acquireId. */
  @IsOptional() @IsCorrelationId() leaseId?: LeaseId;
  /** The acquire of the lease. An acquire that arrives after its release is refused. */
  @IsOptional() @IsId() acquireId?: string;
  /** How the call under the lease ended. */
  @IsIn(RELEASE_OUTCOMES) outcome!: ReleaseOutcome;
  /** Tokens generated under this lease. */
  @IsOptional() @IsWithin(0, LIMITS.maxTokens) tokens?: Integer;
  /**
   * With `busy`: pause that the engine has asked for (`Retry-After`), milliseconds. Default: 1 s, doubled with each
   * `busy` in a row, at most 30 s.
   */
  @IsOptional() @IsWithin(0, LIMITS.retryAfterMs) retryAfterMs?: Integer;
}
/** `lb.release`: releases a lease. The message may have no reply subject. */
export class ReleaseRequest extends ReleaseItem {}
export interface ReleaseReply {
  /** True if this call released the lease. */
  released: boolean;
  /** Why. `tombstone`: there was no lease, and a later acquire with this acquireId is refused. */
  reason: 'released' | 'already-released' | 'unknown' | 'fenced' | 'tombstone';
  /**
   * After the outcome `failed`: true if more than half of the servers answer probes and fail calls of other prompts
   * too. Then the failure says nothing about the request.
   */
  mostServersFail?: boolean;
}
/** `lb.release-many` */
export class ReleaseManyRequest {
  /** Leases to release. */
  @IsListOf(() => ReleaseItem, LIMITS.acquiresPerCall, 1) releases!: ReleaseItem[];
}
export interface ReleaseManyReply {
  /** Results in the order of the request. */
  results: ReleaseReply[];
}

/** `lb.cancel`: ends the wait of an acquire, which is answered RELEASED. A granted lease stays. */
export class CancelAcquireRequest extends WorkerRequest {
  /** The acquire that waits. */
  @IsId() acquireId!: string;
}
export interface CancelAcquireReply {
  /** True if this call ended the wait. */
  cancelled: boolean;
  /**
   * `granted`: the acquire has the lease `leaseId`, which must be released. `tombstone`: the acquire has not arrived
   * yet and will be refused. `fenced`: the worker epoch has expired, or the acquire belongs to another worker.
   */
  reason: 'cancelled' | 'granted' | 'released' | 'tombstone' | 'fenced';
  leaseId?: LeaseId;
}

/** `lb.status`: totals of the pool and the first page of servers. */
export class LoadBalancerStatusRequest {}
/** State and leases of one server. */
export interface ServerTotals extends ServerName, Pick<ServerStatus, 'inflight' | 'maxInflight'> {}
/** Totals of a pool. */
export interface LoadBalancerStatus {
  /** Name of the pool. */
  pool: string;
  /** True while `pool.pause` is in force. */
  paused: boolean;
  /** End of a pause with a deadline, time of Redis, milliseconds. */
  pausedUntilMs?: Integer;
  /**
   * When Redis was last restarted or set back, time of Redis, milliseconds: changes just before may be lost. Absent: no
   * restart is known.
   */
  setBackAtMs?: Integer;
  /** Registered servers. */
  servers: Integer;
  /** Servers that take leases. */
  readyServers: Integer;
  /** Live leases. */
  leases: Integer;
  /** Sessions that are bound to a server. */
  sessions: Integer;
  /** Idle sessions forgotten so far, by age or because the limit was reached. */
  sessionsEvicted: Integer;
  /** Sessions that are paused for lack of KV memory; only with `sessionAdmission`, as the next three. */
  pausedSessions: Integer;
  /** Pauses of sessions so far. */
  sessionPauses: Integer;
  /** Acquires of paused sessions that wait for KV memory. */
  pausedSessionWaiters: Integer;
  /** Acquires of new sessions that wait for KV memory. */
  newSessionWaiters: Integer;
  /** Choices so far that examined more than 128 servers. */
  slowScans: Integer;
  /** Acquires that wait for room. */
  waiters: Integer;
  /** Live worker epochs. */
  workers: Integer;
  /** Expired worker and server epochs that still have leases to return. */
  expiredEpochs: Integer;
  /** The first page of servers; `server.list` returns all. */
  perServer: ServerTotals[];
}

/** `lb.finish-session`: forgets the session of a finished trajectory, and releases no leases. Idempotent. */
export class FinishSessionRequest {
  /** Id of the session to finish. */
  @IsCorrelationId() sessionId!: string;
}
export interface FinishSessionReply {
  /** False when there was no such session. */
  finished: boolean;
}

/** `lb.clear-sessions`: forgets all sessions; a session with leases is forgotten with its last lease. */
export class ClearSessionsRequest {}
export interface ClearSessionsReply {
  /** Sessions that are forgotten now or with their last lease. */
  cleared: Integer;
}
