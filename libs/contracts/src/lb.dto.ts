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

/** One request for a server; part of `lb.acquire-many` and, with the worker, `lb.acquire`. */
export class AcquireItem {
  /** Idempotency of this call: a repeat gets the same lease while it lives and 120 s after. */
  @IsId() acquireId!: string;
  /** Correlation only; one trajectory uses it for every turn. */
  @IsCorrelationId() requestId!: string;
  /** Turns of one session stay on one server. */
  @IsOptional() @IsCorrelationId() sessionId?: string;
  /** Siblings of one prompt, for spread or affinity. */
  @IsOptional() @IsId({}, MAX_COMPOSED_ID_BYTES) groupId?: string;
  /**
   * Priority among those that wait, from 0 (lowest) to 9.
   * @default 5
   */
  @IsOptional() @IsInt() @Min(0) @Max(9) priority?: Integer;
  /** Tokens of context the engine must hold for it. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.maxTokens) contextTokens?: Integer;
  /** Only a server with exactly this weight version. */
  @IsOptional() @IsCounter(0) weightVersion?: Integer;
  /** Only a server with at least this weight version. */
  @IsOptional() @IsCounter(0) minWeightVersion?: Integer;
  /** Only a server at most this many versions behind the newest one that takes leases in the pool. */
  @IsOptional() @IsCounter(0) maxWeightLag?: Integer;
  /** Not on these servers, e.g. one that has just failed the caller. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(LIMITS.excludedServers)
  @IsId({ each: true })
  excludeServers?: ServerId[];
  /** Only a server that has all these labels. */
  @IsOptional() @IsLabels() labels?: Labels;
  /** Only a server whose engine has all of these, as far as is known. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(ENGINE_FEATURES.length)
  @IsIn(ENGINE_FEATURES, { each: true })
  needs?: EngineFeature[];
  /** Data-parallel rank the session runs on; kept with its binding and told to its later turns. */
  @IsOptional() @IsInt() @Min(0) @Max(65_535) dpRank?: Integer;
  /**
   * Exactly this server, if it can take the lease, whatever the session and the policy say; else the usual choice, with
   * the branch `bound-unavailable`. The session is bound to the server it gets.
   */
  @IsOptional() @IsId() boundServerId?: ServerId;
  /** Only this epoch of `boundServerId`. */
  @IsOptional() @IsEpoch() boundServerEpoch?: Epoch;
  /** Keep and answer the full snapshot of the decision. */
  @IsOptional() @IsBoolean() explain?: boolean;
  /**
   * Wait at most this long for room, milliseconds, a pause of the pool not counted; 0 = answer at once.
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
/** How a server was chosen (libs/policies/src/routing/README.md). */
export type DecisionBranch = (typeof DECISION_BRANCHES)[number];
/** A server with the key by which it was ranked. */
export interface RankedServer {
  serverId: ServerId;
  /** Load key before the choice, in the unit of the policy; the lowest is chosen. */
  key: number;
}
/** Receipt of one choice. */
export interface Decision {
  /** Routing policy of the pool. */
  policy: RoutingPolicy;
  /** The rule that chose the server. */
  branch: DecisionBranch;
  /** Leases of the chosen server, this one included. */
  inflight: Integer;
  /** Of one that waited, or whose `boundServerId` could not take it: the branch by which it then got its server. */
  via?: DecisionBranch;
  /** Version of the pool's settings. */
  policyVersion?: Integer;
  /** Load key of the chosen server before the choice, in the unit of the policy. */
  key?: number;
  /**
   * The first four servers in the order of the policy that fit the restrictions, with their keys; under consistent-hash
   * one.
   */
  best?: RankedServer[];
  /** Servers with room, before restrictions. */
  eligible?: Integer;
  /** Everything the choice was made from: asked for by `explain`, or sampled. */
  snapshot?: DecisionSnapshot;
}
/** One server as the choice saw it. */
export interface SnapshotServer {
  serverId: ServerId;
  /** Leases it had. */
  leases: Integer;
  /** Takes one more lease. */
  hasRoom: boolean;
  /** Relative capacity. */
  weight: number;
  /** Version of its weights. */
  weightVersion: Integer;
  /** Sequence of the last lease that chose it, modulo 2^32; 0 = never. */
  chosen: Integer;
  /** Context tokens of its leases (at least 256 each) and uncached ones it reported; only under `least-tokens`. */
  tokens?: Integer;
  /** Sessions bound to it, and leases without a session; only under `least-sessions`. */
  sessions?: Integer;
  /** Its next turn; only under `round-robin`. */
  turn?: Integer;
  /** Its labels, if it has any. */
  labels?: Labels;
  /** What its engine is known not to have. */
  lacks?: EngineFeature[];
  /** Reported KV use, 0 to 1. */
  kvUse?: number;
  /** Leases of the acquire's group. */
  groupLeases?: Integer;
}
/** Enough to make the same choice again: see `replayDecision` of libs/policies. */
export interface DecisionSnapshot {
  /** Settings of the pool. */
  settings: PoolSettings;
  /** The acquire, without what has no part in the choice. */
  request: Omit<AcquireItem, 'waitMs' | 'priority' | 'explain'>;
  /** Server of the session, if that is still usable. */
  boundTo?: ServerId;
  /** The one of `boundServerId`, if it could take the lease. */
  namedServer?: ServerId;
  /** Newest weight version of the servers that take leases. */
  newestWeightVersion: Integer;
  /** The first 128 by the order of the policy, the bound and the chosen one. */
  servers: SnapshotServer[];
  /** There were more servers than are listed. */
  truncated?: boolean;
}
/** What a granted acquire is answered: the right to run one request on a server. */
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
 * `lb.acquire-many`: a burst; never parked (waitMs of its items must be absent or 0). What finds no room in the reply
 * is answered REPLY_FULL: it was granted (`details.granted`: the caller holds the lease) or refused all the same, and
 * the item sent again with the same acquireId says how.
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
/** A server on which leases of a burst were granted. */
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
/** An acquire of a burst that was granted; a refused one has `error`. */
export interface GrantedItem {
  /** That of the request. */
  acquireId: string;
  leaseId: LeaseId;
  serverId: ServerId;
  /** Data-parallel rank of the session on this server. */
  dpRank?: Integer;
  /** How the server was chosen; only with `explain`. */
  decision?: Decision;
}
/** An acquire of a burst that was refused; a granted one has `leaseId`. */
export interface RefusedItem {
  /** That of the request. */
  acquireId: string;
  /** Why there is no lease. */
  error: WireError;
}
export interface AcquireManyReply {
  /** Each server named in `leases`, once. */
  servers: Record<ServerId, GrantedServer>;
  /** In the order of the request; `decision` of those with `explain`, all others stand in `lb.decisions`. */
  leases: (GrantedItem | RefusedItem)[];
}

/**
 * `lb.transfer`: a live lease goes on on another server, all at once: the same leaseId and holder, its session with it.
 * The answer is that of an acquire, with the branch `transferred`. The call on the old server is the caller's to end.
 * Refused, with nothing changed: LEASE_NOT_FOUND, FENCED, SERVER_NOT_FOUND, SERVER_NOT_READY, SERVER_FULL,
 * SERVER_UNSUITABLE, POOL_PAUSED, VALIDATION_FAILED (it is there already).
 */
export class TransferLeaseRequest {
  /** Idempotency of this call: a repeat gets the first answer for 120 s. */
  @IsId() transferId!: string;
  /** One of leaseId and acquireId. */
  @IsOptional() @IsCorrelationId() leaseId?: LeaseId;
  /** The acquire that the lease was granted to. */
  @IsOptional() @IsId() acquireId?: string;
  /** Its holder. */
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
  /** The server where it goes on. */
  @IsId() targetServerId!: ServerId;
  /** Only while this is the epoch of the target. */
  @IsOptional() @IsEpoch() targetEpoch?: Epoch;
  /** For the log. */
  @IsOptional() @MaxLength(256) reason?: string;
}

export const RELEASE_OUTCOMES = ['finished', 'failed', 'rejected', 'aborted', 'unclaimed'] as const;
/**
 * How the call under a lease ended. `failed`: no connection, a broken stream or 5xx, which speaks against the server;
 * `rejected`: the engine refused the request itself (4xx), which does not. `unclaimed`: a lease nobody held.
 */
export type ReleaseOutcome = (typeof RELEASE_OUTCOMES)[number];

/** One lease that is given back. */
export class ReleaseItem {
  /** One of leaseId and acquireId. */
  @IsOptional() @IsCorrelationId() leaseId?: LeaseId;
  /** Also when the acquire itself may still be on its way: it then finds a tombstone and is refused. */
  @IsOptional() @IsId() acquireId?: string;
  /** How the call under it ended. */
  @IsIn(RELEASE_OUTCOMES) outcome!: ReleaseOutcome;
  /** Tokens made under this lease. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.maxTokens) tokens?: Integer;
}
/** `lb.release`; may be sent without a reply subject. */
export class ReleaseRequest extends ReleaseItem {}
export interface ReleaseReply {
  /** True when this call gave the lease back. */
  released: boolean;
  /** `tombstone`: nothing was held, and an acquire by this acquireId that comes later is refused. */
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

/** `lb.cancel`: ends the waiting of an acquire, which is answered RELEASED. What was granted is not taken back. */
export class CancelAcquireRequest {
  /** The acquire that waits. */
  @IsId() acquireId!: string;
  /** The worker that sent it. */
  @IsWorkerId() workerId!: WorkerId;
  @IsEpoch() workerEpoch!: Epoch;
}
export interface CancelAcquireReply {
  /** True when it waited and does not any more. */
  cancelled: boolean;
  /**
   * `granted`: it holds `leaseId`, which must be released. `tombstone`: it has not come yet and will be refused.
   * `fenced`: the worker epoch is expired, or the acquire is another worker's.
   */
  reason: 'cancelled' | 'granted' | 'released' | 'tombstone' | 'fenced';
  leaseId?: LeaseId;
}

/** `lb.status`: totals of the pool and the first page of servers. */
export class LoadBalancerStatusRequest {}
/** What `lb.status` tells of one server. */
export interface ServerTotals {
  serverId: ServerId;
  /** State of the server. */
  state: ServerState;
  epoch: Epoch;
  /** Its leases. */
  inflight: Integer;
  /** Most leases at once. */
  maxInflight: Integer;
}
/** Totals of a pool. */
export interface LoadBalancerStatus {
  /** The pool. */
  pool: string;
  /** Servers that are registered. */
  servers: Integer;
  /** Servers that take leases. */
  readyServers: Integer;
  /** Live leases. */
  leases: Integer;
  /** Sessions that are bound to a server. */
  sessions: Integer;
  /** Idle sessions forgotten so far, by age or because the limit was reached. */
  sessionsEvicted: Integer;
  /** Choices so far that looked at more than 128 servers. */
  slowScans: Integer;
  /** Acquires that wait for room. */
  waiters: Integer;
  /** Live worker epochs. */
  workers: Integer;
  /** Worker and server epochs whose leases are still being returned. */
  expiredEpochs: Integer;
  /** The first page of servers; `server.list` has all. */
  perServer: ServerTotals[];
}

/** `lb.finish-session`: the trajectory is over; idempotent, does not release leases. */
export class FinishSessionRequest {
  /** The session. */
  @IsCorrelationId() sessionId!: string;
}
export interface FinishSessionReply {
  /** False when there was no such session. */
  finished: boolean;
}

/** `lb.clear-sessions`: forgets all sessions, as after new weights; those with leases are forgotten with their last. */
export class ClearSessionsRequest {}
export interface ClearSessionsReply {
  /** Sessions that were forgotten or will be. */
  cleared: Integer;
}

/** `lb.decisions`: recent choices, the latest first, one page. */
export class DecisionsRequest {
  /** Of the page before. */
  @IsOptional() @Matches(/^\d{1,16}$/, { message: 'cursor is not one of ours' }) cursor?: string;
  /** Default and at most 128; 16 of the full ones. */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.page) limit?: Integer;
  /** Only those with their snapshot, which are kept apart. */
  @IsOptional() @IsBoolean() full?: boolean;
}
/** One choice of the ring. */
export interface DecisionRecord {
  /** Its place among all choices: the sequence of the lease, but for a transfer, which has a place of its own. */
  seq: Integer;
  /** The acquire that it was made for. */
  acquireId: string;
  serverId: ServerId;
  /** When it was made, milliseconds since 1970. */
  decidedAtMs: Integer;
  /** The choice. */
  decision: Decision;
}
export interface DecisionsReply {
  /** The page, the latest first. */
  decisions: DecisionRecord[];
  /** Send it for the next page; absent at the end. */
  cursor?: string;
}
