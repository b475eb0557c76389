import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsOptional,
  Max,
  Min,
  ValidateNested,
} from 'class-validator';
import { IsAttempt, IsEpoch } from './epochs';
import { IsCorrelationId, IsId, type LeaseId, type RequestId, type ServerId, type AttemptId, type Epoch } from './ids';
import { IsCounter } from './integers';
import { LIMITS } from './limits';

export const REBALANCE_POLICIES = ['tier-cost', 'tier-min'] as const;
export type RebalancePolicy = (typeof REBALANCE_POLICIES)[number];

/** How tokens get to the new server: they had no cache, it is computed again, or (a later engine feature) carried over. */
export type MoveMeans = 'bind' | 'recompute' | 'transfer';

/** One move with what it assumes: it is dropped when any of it has changed. */
export interface PlannedMove {
  requestId: RequestId;
  attempt: AttemptId;
  fromServerId: ServerId;
  fromEpoch: Epoch;
  toServerId: ServerId;
  toEpoch: Epoch;
  /** `leave`: its server is drained; `tier`: for a smaller batch; `wait`: it need not wait there. */
  purpose: 'leave' | 'tier' | 'wait';
  means: MoveMeans;
  /** Engine time of the new server, seconds. */
  costSeconds: number;
  /** Its part of the gain, seconds; of a `tier` move an even share, since none gains without the others. */
  gainSeconds: number;
}

/**
 * Why a plan moves nothing. `balanced`: no server is above the smallest batch tier that the load allows, and nothing waits
 * in vain. `no-room`: no KV cache for what the requests will grow to. `held-back`: too few may be moved: nearly done, moved
 * lately or often. `not-worth-it`: the moves cost more than they bring.
 */
export type NoMoveReason = 'balanced' | 'no-room' | 'held-back' | 'not-worth-it';

/** What a plan expects. */
export interface RebalanceSummary {
  policy: RebalancePolicy;
  /** The largest batch tier of all servers now; a batch above the largest tier counts as itself. */
  tierBefore: number;
  /** After the moves. */
  tierAfter: number;
  /** Expected wall time saved, seconds. */
  gainSeconds: number;
  /** Engine time of all moves, seconds. */
  costSeconds: number;
  /** Longest time that one server spends on what it takes, seconds: what the plan costs in wall time, without the pause. */
  stallSeconds: number;
  /** Only when nothing is moved. */
  reason?: NoMoveReason;
}

/** What the rebalancer of a pool does and by which parameters (libs/policies/src/rebalance/README.md). */
export interface RebalanceSettings {
  /** `dry-run`: plans are made, kept and counted, nothing is moved. */
  mode: 'off' | 'dry-run' | 'on';
  policy: RebalancePolicy;
  tiers: number[];
  stepBaseSeconds: number;
  stepPerSequenceSeconds: number;
  prefillTokensPerSecond: number;
  minGainRatio: number;
  pauseSeconds: number;
  maxMovesPerRequest: number;
  minMoveIntervalMs: number;
  minRemainingTokens: number;
  /** Servers in drain are emptied by moves. */
  movesDrained: boolean;
  /** Between two plans, whatever happens. */
  minPlanIntervalMs: number;
  /** A plan is made after this though nothing happened. */
  planIntervalMs: number;
}

/** `rebalance.configure`: what is absent stays; nothing at all asks for the settings. */
export class ConfigureRebalanceRequest {
  @IsOptional() @IsIn(['off', 'dry-run', 'on']) mode?: RebalanceSettings['mode'];
  @IsOptional() @IsIn(REBALANCE_POLICIES) policy?: RebalancePolicy;
  /** Batch sizes for which the engines have captured graphs; strictly descending. */
  @IsOptional() @IsArray() @ArrayMaxSize(64) @IsCounter(1, { each: true }) tiers?: number[];
  /** A decode step takes stepBaseSeconds + stepPerSequenceSeconds x tier. */
  @IsOptional() @IsNumber() @Min(0) @Max(100) stepBaseSeconds?: number;
  @IsOptional() @IsNumber() @Min(0) @Max(100) stepPerSequenceSeconds?: number;
  @IsOptional() @IsNumber() @Min(1) prefillTokensPerSecond?: number;
  /** The gain must be more than this many times the longest stall. */
  @IsOptional() @IsNumber() @Min(0) minGainRatio?: number;
  @IsOptional() @IsNumber() @Min(0) pauseSeconds?: number;
  @IsOptional() @IsInt() @Min(0) @Max(1_000) maxMovesPerRequest?: number;
  @IsOptional() @IsCounter(0) minMoveIntervalMs?: number;
  @IsOptional() @IsCounter(0) minRemainingTokens?: number;
  @IsOptional() @IsBoolean() movesDrained?: boolean;
  @IsOptional() @IsCounter(100) minPlanIntervalMs?: number;
  @IsOptional() @IsCounter(100) planIntervalMs?: number;
}

/** `rebalance.plan`: makes a plan and keeps it for a while; nothing is moved. A repeat gets the same plan. */
export class PlanRebalanceRequest {
  @IsId() planId!: string;
  /** Instead of that of the settings. */
  @IsOptional() @IsIn(REBALANCE_POLICIES) policy?: RebalancePolicy;
  @IsOptional() @IsArray() @ArrayMaxSize(64) @IsCounter(1, { each: true }) tiers?: number[];
  /** Moves in the page of the answer; default and at most 128. */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.page) limit?: number;
}

/** A move that somebody asks for. One of requestId and leaseId (a call that only routes). */
export class WantedMove {
  @IsOptional() @IsCorrelationId() requestId?: RequestId;
  @IsOptional() @IsCorrelationId() leaseId?: LeaseId;
  /** Only while this attempt runs. */
  @IsOptional() @IsAttempt() attempt?: AttemptId;
  @IsId() targetServerId!: ServerId;
  /** Only while this is the epoch of the target. */
  @IsOptional() @IsEpoch() targetEpoch?: Epoch;
}

/** `rebalance.execute`: carries out a plan that was made before, or these moves. A repeat sends nothing twice. */
export class ExecuteRebalanceRequest {
  @IsId() planId!: string;
  @IsOptional()
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.page)
  @ValidateNested({ each: true })
  @Type(() => WantedMove)
  moves?: WantedMove[];
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.page) limit?: number;
}

/** `rebalance.status`: a plan with the state of each move. */
export class RebalanceStatusRequest {
  @IsId() planId!: string;
  @IsOptional() @IsCounter(0) cursor?: number;
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.page) limit?: number;
}

/**
 * `planned`: not sent. `sent`: its holder was told, and is until it confirms. `moved`: pending and bound to its new server,
 * or on it already. `completed-first`: it had finished. `superseded`: a cut, an abort or a failure has won. `expired`: its
 * holder did not confirm in time; it goes on where it is. `refused`: nothing was done.
 */
export const MOVE_STATES = ['planned', 'sent', 'moved', 'completed-first', 'superseded', 'expired', 'refused'] as const;
export type MoveState = (typeof MOVE_STATES)[number];

/**
 * Why a move was refused. `victim-changed`: another attempt runs. `ending`: it is being cut, aborted or moved.
 * `server-not-found`: also one of another pool. `server-changed`: another epoch. Any other `server-<state>` than ready.
 */
export type MoveRefusal =
  | 'unknown-request'
  | 'unknown-lease'
  | 'victim-changed'
  | 'ending'
  | 'same-server'
  | 'moved-too-often'
  | 'server-not-found'
  | 'server-changed'
  | 'server-full'
  | 'server-pending'
  | 'server-suspect'
  | 'server-failed'
  | 'server-draining'
  | 'server-cordoned'
  | 'server-quarantined';

export interface MoveStatus extends Partial<PlannedMove> {
  toServerId: ServerId;
  /** Of a call that only routes. */
  leaseId?: LeaseId;
  state: MoveState;
  refusal?: MoveRefusal;
}
export interface RebalanceStatus extends Partial<RebalanceSummary> {
  planId: string;
  plannedAtMs: number;
  /** Moves of the plan. */
  moves: number;
  /** Of them looked at by `rebalance.execute`. */
  sentMoves: number;
  /** Moves by state. */
  states: Partial<Record<MoveState, number>>;
  results: MoveStatus[];
  /** There is more: ask `rebalance.status` with this cursor. */
  cursor?: number;
}
