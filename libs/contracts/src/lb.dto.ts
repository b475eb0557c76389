import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsOptional,
  Matches,
  Max,
  MaxLength,
  Min,
  ValidateNested,
} from 'class-validator';
import { ENGINE_FEATURES, type EngineFeature } from './capabilities.dto';
import { IsEpoch } from './epochs';
import type { WireError } from './errors';
import {
  IsCorrelationId,
  IsId,
  type LeaseId,
  type ServerId,
  type WorkerId,
  type Epoch,
  IsWorkerId,
  MAX_COMPOSED_ID_BYTES,
} from './ids';
import { IsCounter, type Integer } from './integers';
import { IsLabels, type Labels } from './labels';
import { LIMITS } from './limits';
import type { PoolSettings, RoutingPolicy } from './pool.dto';
import type { EngineDialect, ServerState } from './server.dto';

/** One acquire; part of `lb.acquire-many` and, with the worker, of `lb.acquire`. */
export class AcquireItem {
  /** Id of the acquire, for idempotency: a repeat gets the same lease while it lives and for 120 s afterwards. */
  @IsId() acquireId!: string;
  /** For correlation only; a trajectory may use one requestId for all turns. */
  @IsCorrelationId() requestId!: string;
  /** Turns of one session stay on one server. */
  @IsOptional() @IsCorrelationId() sessionId?: string;
  /** Siblings of one prompt, for spread or affinity. */
  @IsOptional() @IsId({}, MAX_COMPOSED_ID_BYTES) groupId?: string;
  /**
   * Priority among waiting acquires, from 0 (lowest) to 9.
   * @default 5
   */
  @IsOptional() @IsInt() @Min(0) @Max(9) priority?: Integer;
  /** Context of the request, tokens. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.maxTokens) contextTokens?: Integer;
  /** Only a server with exactly this weight version. */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
  /** Only a server with at least this weight version. */
  @IsOptional() @IsCounter(0) minWeightVersion?: Integer;
  /** Only a server at most this many versions behind the newest one that takes leases in the pool. */
  @IsOptional() @IsCounter(0) maxWeightLag?: Integer;
  /** Not on these servers, for example one that has just failed. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(LIMITS.excludedServers)
  @IsId({ each: true })
  excludeServers?: ServerId[];
  /** Only a server that has all these labels. */
  @IsOptional() @IsLabels() labels?: Labels;
  /** Only a server whose engine is not known to lack any of these. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(ENGINE_FEATURES.length)
  @IsIn(ENGINE_FEATURES, { each: true })
  needs?: EngineFeature[];
  /** Data-parallel rank of the session; stored with its binding and returned to later turns. */
  @IsOptional() @IsInt() @Min(0) @Max(65_535) dpRank?: Integer;
  /**
   * This server, if it can take the lease, regardless of session and policy; otherwise the usual choice, with the
   * branch `bound-unavailable`. The session is bound to the chosen server.
   */
  @IsOptional() @IsId() boundServerId?: ServerId;
  /** Only this epoch of `boundServerId`. */
  @IsOptional() @IsEpoch() boundServerEpoch?: Epoch;
  /** Store and return the full snapshot of the decision. */
  @IsOptional() @IsBoolean() explain?: boolean;
  /**
   * Wait at most this long for room, milliseconds; 0 = answer at once.
   * @default 0
   */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.waitMs) waitMs?: Integer;
}

/** `lb.acquire` */
export class AcquireRequest extends AcquireItem {
  /** The worker that will hold the lease. */
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
}

export const DECISION_BRANCHES = [
  'sticky-hit',
  'sticky-broken',
  'least-loaded',
  'tie',
  'round-robin',
  'hash',
  'group-spread',
  'group-affinity',
  'bound',
  'bound-unavailable',
  'transferred',
  'waited',
  'repeated',
] as const;
/** The rule that chose a server. */
export type DecisionBranch = (typeof DECISION_BRANCHES)[number];
/** A server and its rank. */
export interface RankedServer {
  serverId: ServerId;
  /** Load key before the choice, in the unit of the policy; the lowest is chosen. */
  key: number;
}
/** How a server was chosen. */
export interface Decision {
  /** Routing policy of the pool. */
  policy: RoutingPolicy;
  /** The rule that chose the server. */
  branch: DecisionBranch;
  /** Leases of the chosen server, this one included. */
  inflight: Integer;
  /** For an acquire that waited, or whose `boundServerId` could not take it: the branch that chose the server. */
  via?: DecisionBranch;
  /** Version of the pool's settings. */
  policyVersion?: Integer;
  /** Load key of the chosen server before the choice, in the unit of the policy. */
  key?: number;
  /**
   * The first four servers in the order of the policy that meet the constraints, with their keys; for consistent-hash
   * one.
   */
  best?: RankedServer[];
  /** Number of servers with room, before constraints. */
  eligible?: Integer;
  /** All input of the choice, if requested by `explain` or sampled. */
  snapshot?: DecisionSnapshot;
}
/** State of a server at the time of the choice. */
export interface SnapshotServer {
  serverId: ServerId;
  /** Number of its leases. */
  leases: Integer;
  /** Has room for one more lease. */
  hasRoom: boolean;
  /** Relative capacity. */
  weight: number;
  /** Its weight version. */
  weightVersion: Integer;
  /** Sequence of the last lease that chose it, modulo 2^32; 0 = never. */
  chosen: Integer;
  /** Context tokens of its leases (at least 256 each) and its reported uncached tokens; only for `least-tokens`. */
  tokens?: Integer;
  /** Bound sessions, and leases without a session; only for `least-sessions`. */
  sessions?: Integer;
  /** Its next turn; only for `round-robin`. */
  turn?: Integer;
  /** Its labels, if it has any. */
  labels?: Labels;
  /** Capabilities that its engine is known to lack. */
  lacks?: EngineFeature[];
  /** Reported KV use, 0 to 1. */
  kvUse?: number;
  /** Leases of the group of the acquire. */
  groupLeases?: Integer;
}
/** All input of a choice: `replayDecision` repeats the choice. */
export interface DecisionSnapshot {
  /** Settings of the pool. */
  settings: PoolSettings;
  /** The fields of the acquire that affect the choice. */
  request: Omit<AcquireItem, 'waitMs' | 'priority' | 'explain'>;
  /** Server of the session, if it is still usable. */
  boundTo?: ServerId;
  /** Server of `boundServerId`, if it could take the lease. */
  namedServer?: ServerId;
  /** Newest weight version of the servers that take leases. */
  newestWeightVersion: Integer;
  /** The first 128 servers in the order of the policy, the bound one and the chosen one. */
  servers: SnapshotServer[];
  /** There were more servers than are listed. */
  truncated?: boolean;
}
/** A granted lease: the right to run one request on a server. */
export interface LeaseGrant {
  leaseId: LeaseId;
  serverId: ServerId;
  /** Epoch of the server. */
  epoch: Epoch;
  /** Base URL of the engine. */
  endpoint: string;
  /** API of the engine. */
  dialect: EngineDialect;
  /** Model of the engine, if the server was registered with one. */
  model?: string;
  /** Version of the weights of the server. */
  weightVersion: Integer;
  /** Data-parallel rank of the session on this server. */
  dpRank?: Integer;
  /** How the server was chosen. */
  decision: Decision;
}

/**
 * `lb.acquire-many`: many acquires, which never wait (waitMs of the items must be absent or 0). An item without room in
 * the reply is answered REPLY_FULL; `details.granted` says whether the caller holds its lease, and the same item sent
 * again returns the full answer.
 */
export class AcquireManyRequest {
  /** The worker that will hold the leases. */
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
  /** The acquires, each with an acquireId of its own. */
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.acquiresPerCall)
  @ValidateNested({ each: true })
  @Type(() => AcquireItem)
  acquires!: AcquireItem[];
}
/** A server on which leases were granted. */
export interface GrantedServer {
  /** Epoch of the server. */
  epoch: Epoch;
  /** Base URL of the engine. */
  endpoint: string;
  /** API of the engine. */
  dialect: EngineDialect;
  /** Model of the engine, if the server was registered with one. */
  model?: string;
  /** Version of the weights of the server. */
  weightVersion: Integer;
}
/** A granted acquire; a refused one has `error`. */
export interface GrantedItem {
  /** As in the request. */
  acquireId: string;
  leaseId: LeaseId;
  serverId: ServerId;
  /** Data-parallel rank of the session on this server. */
  dpRank?: Integer;
  /** How the server was chosen; only with `explain`. */
  decision?: Decision;
}
/** A refused acquire; a granted one has `leaseId`. */
export interface RefusedItem {
  /** As in the request. */
  acquireId: string;
  /** Why there is no lease. */
  error: WireError;
}
export interface AcquireManyReply {
  /** Each server named in `leases`, once. */
  servers: Record<ServerId, GrantedServer>;
  /** In the order of the request; with `decision` for items with `explain`. `lb.decisions` has all decisions. */
  leases: (GrantedItem | RefusedItem)[];
}

/**
 * `lb.transfer`: moves a live lease to another server atomically, with its session; leaseId and holder stay. The reply
 * is that of an acquire, with the branch `transferred`. The caller ends the call on the old server. A refusal changes
 * nothing: LEASE_NOT_FOUND, FENCED, SERVER_NOT_FOUND, SERVER_NOT_READY, SERVER_FULL, SERVER_UNSUITABLE, POOL_PAUSED,
 * VALIDATION_FAILED (the lease is already on this server).
 */
export class TransferLeaseRequest {
  /** Id of the transfer, for idempotency: a repeat gets the first answer for 120 s. */
  @IsId() transferId!: string;
  /** One of leaseId and acquireId. */
  @IsOptional() @IsCorrelationId() leaseId?: LeaseId;
  /** The acquire that the lease was granted to. */
  @IsOptional() @IsId() acquireId?: string;
  /** The worker that holds the lease. */
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
  /** The server that gets the lease. */
  @IsId() targetServerId!: ServerId;
  /** Only if this is the current epoch of the target. */
  @IsOptional() @IsEpoch() targetEpoch?: Epoch;
  /** Text for the log. */
  @IsOptional() @MaxLength(256) reason?: string;
}

export const RELEASE_OUTCOMES = ['finished', 'failed', 'rejected', 'aborted', 'unclaimed'] as const;
/**
 * How the call under a lease ended. `failed`: no connection, a broken stream or 5xx; it counts against the server.
 * `rejected`: the engine refused the request (4xx); it does not count against the server. `unclaimed`: a lease that the
 * worker does not hold.
 */
export type ReleaseOutcome = (typeof RELEASE_OUTCOMES)[number];

/** One lease to release. */
export class ReleaseItem {
  /** One of leaseId and acquireId. */
  @IsOptional() @IsCorrelationId() leaseId?: LeaseId;
  /** The acquire of the lease. If it has not arrived yet, it is refused when it arrives. */
  @IsOptional() @IsId() acquireId?: string;
  /** How the call under it ended. */
  @IsIn(RELEASE_OUTCOMES) outcome!: ReleaseOutcome;
  /** Tokens generated under this lease. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.maxTokens) tokens?: Integer;
}
/** `lb.release`; may be sent without a reply subject. */
export class ReleaseRequest extends ReleaseItem {}
export interface ReleaseReply {
  /** True if this call released the lease. */
  released: boolean;
  /** `tombstone`: there was no lease, and a later acquire with this acquireId is refused. */
  reason: 'released' | 'already-released' | 'unknown' | 'fenced' | 'tombstone';
}
/** `lb.release-many` */
export class ReleaseManyRequest {
  /** The leases. */
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.acquiresPerCall)
  @ValidateNested({ each: true })
  @Type(() => ReleaseItem)
  releases!: ReleaseItem[];
}
export interface ReleaseManyReply {
  /** In the order of the request. */
  results: ReleaseReply[];
}

/** `lb.cancel`: ends the wait of an acquire, which is answered RELEASED. A granted lease stays. */
export class CancelAcquireRequest {
  /** The acquire that waits. */
  @IsId() acquireId!: string;
  /** The worker that sent it. */
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
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
export interface ServerTotals {
  serverId: ServerId;
  /** State of the server. */
  state: ServerState;
  epoch: Epoch;
  /** Number of its leases. */
  inflight: Integer;
  /** Maximum leases at the same time. */
  maxInflight: Integer;
}
/** Totals of a pool. */
export interface LoadBalancerStatus {
  /** The pool. */
  pool: string;
  /** Registered servers. */
  servers: Integer;
  /** Servers that take leases. */
  readyServers: Integer;
  /** Live leases. */
  leases: Integer;
  /** Sessions bound to a server. */
  sessions: Integer;
  /** Idle sessions forgotten so far, by age or because the limit was reached. */
  sessionsEvicted: Integer;
  /** Choices so far that examined more than 128 servers. */
  slowScans: Integer;
  /** Acquires that wait for room. */
  waiters: Integer;
  /** Live worker epochs. */
  workers: Integer;
  /** Worker and server epochs whose leases are still being returned. */
  expiredEpochs: Integer;
  /** The first page of servers; `server.list` returns all. */
  perServer: ServerTotals[];
}

/** `lb.finish-session`: forgets the session of a finished trajectory; idempotent, does not release leases. */
export class FinishSessionRequest {
  /** The session. */
  @IsCorrelationId() sessionId!: string;
}
export interface FinishSessionReply {
  /** False when there was no such session. */
  finished: boolean;
}

/** `lb.clear-sessions`: forgets all sessions; a session with leases is forgotten with its last lease. */
export class ClearSessionsRequest {}
export interface ClearSessionsReply {
  /** Sessions that were forgotten or will be. */
  cleared: Integer;
}

/** `lb.decisions`: one page of recent choices, latest first. */
export class DecisionsRequest {
  /** Cursor of the previous page. */
  @IsOptional() @Matches(/^\d{1,16}$/, { message: 'cursor is not one of ours' }) cursor?: string;
  /** Maximum entries of the page, at most 128 (default), or 16 with snapshots. */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.page) limit?: Integer;
  /** Only decisions with a snapshot, which are stored separately. */
  @IsOptional() @IsBoolean() full?: boolean;
}
/** One recorded choice. */
export interface DecisionRecord {
  /** Sequence of the choice: that of the lease, or a separate one for a transfer. */
  seq: Integer;
  /** The acquire of the choice. */
  acquireId: string;
  serverId: ServerId;
  /** When it was made, milliseconds since 1970. */
  decidedAtMs: Integer;
  /** The choice. */
  decision: Decision;
}
export interface DecisionsReply {
  /** The choices, latest first. */
  decisions: DecisionRecord[];
  /** Send this for the next page; absent on the last page. */
  cursor?: string;
}
