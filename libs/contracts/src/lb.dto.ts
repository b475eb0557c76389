import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsIn,
  IsInt,
  IsOptional,
  Max,
  Min,
  ValidateNested,
} from 'class-validator';
import type { WireError } from './errors';
import { IsCorrelationId, IsId, type LeaseId, type ServerId, type WorkerId } from './ids';
import { LIMITS } from './limits';
import type { EngineDialect } from './server.dto';

/** One wish for a server; part of `lb.acquire-many` and, with the worker, `lb.acquire`. */
export class AcquireItem {
  /** Idempotency of this call: a repeat gets the same lease while it lives and 120 s after. */
  @IsId() acquireId!: string;
  /** Correlation only; one trajectory uses it for every turn. */
  @IsCorrelationId() requestId!: string;
  /** Turns of one session stay on one server. */
  @IsOptional() @IsCorrelationId() sessionId?: string;
  /** Siblings of one prompt, for spread or affinity. */
  @IsOptional() @IsCorrelationId() groupId?: string;
  /** 0 (lowest) to 9; default 5. */
  @IsOptional() @IsInt() @Min(0) @Max(9) priority?: number;
  /** Tokens of context the engine must hold for it. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.maxTokens) contextTokens?: number;
  /** Only a server with exactly this weight version. */
  @IsOptional() @IsInt() @Min(0) weightVersion?: number;
  /** Wait at most this long for room, milliseconds; default 0 = answer at once. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.waitMs) waitMs?: number;
}

/** `lb.acquire` */
export class AcquireRequest extends AcquireItem {
  @IsId() workerId!: WorkerId;
  @IsInt() @Min(1) workerEpoch!: number;
}

/** How the server was chosen. */
export const DECISION_BRANCHES = ['sticky-hit', 'least-loaded', 'waited', 'repeated'] as const;
export interface Decision {
  policy: 'least-inflight';
  branch: (typeof DECISION_BRANCHES)[number];
  /** Leases of the chosen server, this one included. */
  inflight: number;
}
export interface LeaseGrant {
  leaseId: LeaseId;
  serverId: ServerId;
  /** Epoch of the server. */
  epoch: number;
  endpoint: string;
  dialect: EngineDialect;
  model?: string;
  weightVersion: number;
  decision: Decision;
}

/** `lb.acquire-many`: a burst; never parked (waitMs of its items must be absent or 0). */
export class AcquireManyRequest {
  @IsId() workerId!: WorkerId;
  @IsInt() @Min(1) workerEpoch!: number;
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.acquiresPerCall)
  @ValidateNested({ each: true })
  @Type(() => AcquireItem)
  acquires!: AcquireItem[];
}
export interface AcquireManyReply {
  /** Each server named in `leases`, once. */
  servers: Record<
    ServerId,
    { epoch: number; endpoint: string; dialect: EngineDialect; model?: string; weightVersion: number }
  >;
  /** In the order of the request. */
  leases: ({ acquireId: string; leaseId: LeaseId; serverId: ServerId } | { acquireId: string; error: WireError })[];
}

export const RELEASE_OUTCOMES = ['finished', 'failed', 'aborted', 'unclaimed'] as const;
export type ReleaseOutcome = (typeof RELEASE_OUTCOMES)[number];

export class ReleaseItem {
  /** One of leaseId and acquireId. */
  @IsOptional() @IsCorrelationId() leaseId?: LeaseId;
  /** Also when the acquire itself may still be on its way: it then finds a tombstone and is refused. */
  @IsOptional() @IsId() acquireId?: string;
  @IsIn(RELEASE_OUTCOMES) outcome!: ReleaseOutcome;
  /** Tokens made under this lease. */
  @IsOptional() @IsInt() @Min(0) @Max(LIMITS.maxTokens) tokens?: number;
}
/** `lb.release`; may be sent without a reply subject. */
export class ReleaseRequest extends ReleaseItem {}
export interface ReleaseReply {
  released: boolean;
  /** `tombstone`: nothing was held, and an acquire by this acquireId that comes later is refused. */
  reason: 'released' | 'already-released' | 'unknown' | 'fenced' | 'tombstone';
}
/** `lb.release-many` */
export class ReleaseManyRequest {
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

/** `lb.status`: totals of the pool and the first page of servers. */
export class LoadBalancerStatusRequest {}
export interface LoadBalancerStatus {
  pool: string;
  servers: number;
  readyServers: number;
  leases: number;
  sessions: number;
  waiters: number;
  workers: number;
  /** Worker and server epochs whose leases are still being returned. */
  voidEpochs: number;
  perServer: { serverId: ServerId; state: string; epoch: number; inflight: number; maxInflight: number }[];
}

/** `lb.finish-session`: the trajectory is over; idempotent, does not release leases. */
export class FinishSessionRequest {
  @IsCorrelationId() sessionId!: string;
}
export interface FinishSessionReply {
  finished: boolean;
}
