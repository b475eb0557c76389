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
import { IsCounter, type Integer } from './integers';
import { LIMITS } from './limits';

export const REBALANCE_POLICIES = ['tier-cost', 'tier-min'] as const;
/** How moves are planned (libs/policies/src/rebalance/README.md). */
export type RebalancePolicy = (typeof REBALANCE_POLICIES)[number];

/**
 * How tokens get to the new server: they had no cache, it is computed again, or (a later engine feature) carried over.
 */
export type MoveMeans = 'bind' | 'recompute' | 'transfer';

/** One move with what it assumes: it is dropped when any of it has changed. */
export interface PlannedMove {
  /** The request that moves. */
  requestId: RequestId;
  /** The attempt that runs. */
  attempt: AttemptId;
  /** Where it runs. */
  fromServerId: ServerId;
  /** Epoch of the server where it runs. */
  fromEpoch: Epoch;
  /** Where it goes. */
  toServerId: ServerId;
  /** Epoch of the server where it goes. */
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
 * Why a plan moves nothing. `balanced`: no server is above the smallest batch tier that the load allows, and nothing
 * waits in vain. `no-room`: no KV cache for what the requests will grow to. `held-back`: too few may be moved: nearly
 * done, moved lately or often. `not-worth-it`: the moves cost more than they bring.
 */
export type NoMoveReason = 'balanced' | 'no-room' | 'held-back' | 'not-worth-it';

/** What a plan expects. */
export interface RebalanceSummary {
  /** The policy that made the plan. */
  policy: RebalancePolicy;
  /** The largest batch tier of all servers now; a batch above the largest tier counts as itself. */
  tierBefore: Integer;
  /** After the moves. */
  tierAfter: Integer;
  /** Expected wall time saved, seconds. */
  gainSeconds: number;
  /** Engine time of all moves, seconds. */
  costSeconds: number;
  /**
   * Longest time that one server spends on what it takes, seconds: what the plan costs in wall time, without the pause.
   */
  stallSeconds: number;
  /** Only when nothing is moved. */
  reason?: NoMoveReason;
}

/** `rebalance.configure`: what is absent stays; nothing at all asks for the settings. */
export class ConfigureRebalanceRequest {
  /**
   * `off`, or plan and move (`on`), or only plan, keep and count (`dry-run`).
   */
  @IsOptional() @IsIn(['off', 'dry-run', 'on']) mode?: 'off' | 'dry-run' | 'on';
  /** How moves are planned. */
  @IsOptional() @IsIn(REBALANCE_POLICIES) policy?: RebalancePolicy;
  /** Batch sizes for which the engines have captured graphs; strictly descending. */
  @IsOptional() @IsArray() @ArrayMaxSize(64) @IsCounter(1, { each: true }) tiers?: Integer[];
  /** A decode step takes stepBaseSeconds + stepPerSequenceSeconds x tier. */
  @IsOptional() @IsNumber() @Min(0) @Max(100) stepBaseSeconds?: number;
  /** Seconds a decode step takes for each sequence of its tier. */
  @IsOptional() @IsNumber() @Min(0) @Max(100) stepPerSequenceSeconds?: number;
  /** Tokens an engine computes in a second when it takes a request with its tokens. */
  @IsOptional() @IsNumber() @Min(1) prefillTokensPerSecond?: number;
  /** The gain must be more than this many times the longest stall. */
  @IsOptional() @IsNumber() @Min(0) minGainRatio?: number;
  /** Time that a move costs besides, seconds. */
  @IsOptional() @IsNumber() @Min(0) pauseSeconds?: number;
  /** Moves of one request in its life. */
  @IsOptional() @IsInt() @Min(0) @Max(1_000) maxMovesPerRequest?: Integer;
  /** Between two moves of one request, milliseconds. */
  @IsOptional() @IsCounter(0) minMoveIntervalMs?: Integer;
  /** A request that is expected to make fewer tokens than this stays. */
  @IsOptional() @IsCounter(0) minRemainingTokens?: Integer;
  /** Servers in drain are emptied by moves. */
  @IsOptional() @IsBoolean() movesDrained?: boolean;
  /** Between two plans at least, milliseconds. */
  @IsOptional() @IsCounter(100) minPlanIntervalMs?: Integer;
  /** A plan is made after this though nothing happened, milliseconds. */
  @IsOptional() @IsCounter(100) planIntervalMs?: Integer;
}

/** What the rebalancer of a pool does and by which parameters (libs/policies/src/rebalance/README.md). */
export type RebalanceSettings = Required<ConfigureRebalanceRequest>;

/** `rebalance.plan`: makes a plan and keeps it for a while; nothing is moved. A repeat gets the same plan. */
export class PlanRebalanceRequest {
  /** Idempotency of this call: a repeat gets the same plan. */
  @IsId() planId!: string;
  /** Instead of that of the settings. */
  @IsOptional() @IsIn(REBALANCE_POLICIES) policy?: RebalancePolicy;
  /** Batch sizes instead of those of the settings, strictly descending. */
  @IsOptional() @IsArray() @ArrayMaxSize(64) @IsCounter(1, { each: true }) tiers?: Integer[];
  /**
   * Moves in the page of the answer.
   * @default 128
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.page) limit?: Integer;
}

/** A move that somebody asks for. One of requestId and leaseId (a call that only routes). */
export class WantedMove {
  /** The request that moves. */
  @IsOptional() @IsCorrelationId() requestId?: RequestId;
  /** The lease of a call that only routes. */
  @IsOptional() @IsCorrelationId() leaseId?: LeaseId;
  /** Only while this attempt runs. */
  @IsOptional() @IsAttempt() attempt?: AttemptId;
  /** Where it goes. */
  @IsId() targetServerId!: ServerId;
  /** Only while this is the epoch of the target. */
  @IsOptional() @IsEpoch() targetEpoch?: Epoch;
}

/** `rebalance.execute`: carries out a plan that was made before, or these moves. A repeat sends nothing twice. */
export class ExecuteRebalanceRequest {
  /** A plan of `rebalance.plan`, or with `moves` a name for them. */
  @IsId() planId!: string;
  /** These moves instead of those of a plan. */
  @IsOptional()
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(LIMITS.page)
  @ValidateNested({ each: true })
  @Type(() => WantedMove)
  moves?: WantedMove[];
  /**
   * Moves in the page of the answer.
   * @default 128
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.page) limit?: Integer;
}

/** `rebalance.status`: a plan with the state of each move. */
export class RebalanceStatusRequest {
  /** The plan. */
  @IsId() planId!: string;
  /** Of the page before. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
  /**
   * Moves in the page of the answer.
   * @default 128
   */
  @IsOptional() @IsInt() @Min(1) @Max(LIMITS.page) limit?: Integer;
}

export const MOVE_STATES = ['planned', 'sent', 'moved', 'completed-first', 'superseded', 'expired', 'refused'] as const;
/**
 * State of a move: `planned`: not sent. `sent`: its holder was told, and is until it confirms. `moved`: pending and
 * bound to its new server, or on it already. `completed-first`: it had finished. `superseded`: a cut, an abort or a
 * failure has won. `expired`: its holder did not confirm in time; it goes on where it is. `refused`: nothing was
 * done.
 */
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

/** A move of a plan with its state. */
export interface MoveStatus extends Partial<PlannedMove> {
  /** Where it goes. */
  toServerId: ServerId;
  /** Of a call that only routes. */
  leaseId?: LeaseId;
  /** How far it is. */
  state: MoveState;
  /** Why it was refused; only then. */
  refusal?: MoveRefusal;
}
/** A plan with its moves. */
export interface RebalanceStatus extends Partial<RebalanceSummary> {
  /** That of the request. */
  planId: string;
  /** When the plan was made, milliseconds since 1970. */
  plannedAtMs: Integer;
  /** Moves of the plan. */
  moves: Integer;
  /** Of them looked at by `rebalance.execute`. */
  sentMoves: Integer;
  /** Moves by state. */
  states: Partial<Record<MoveState, Integer>>;
  /** One page of the moves. */
  results: MoveStatus[];
  /** There is more: ask `rebalance.status` with this cursor. */
  cursor?: Integer;
}
