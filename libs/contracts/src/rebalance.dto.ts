import { IsBoolean, IsIn, IsNumber, IsOptional, Max, Min } from 'class-validator';
import { MoveTarget, type NumberedPageReply } from './common.dto';
import { LIMITS } from './limits';
import { IsAttempt, IsCorrelationId, IsCounter, IsId, IsList, IsListOf, IsWithin } from './rules';
import type { AttemptId, Epoch, Integer, LeaseId, RequestId, ServerId } from './scalars';

export const REBALANCE_POLICIES = ['tier-cost', 'tier-min'] as const;
/** Policy that plans moves (libs/policies/src/rebalance/README.md). */
export type RebalancePolicy = (typeof REBALANCE_POLICIES)[number];

/**
 * How the KV cache gets to the new server. `bind`: there is no cache. `recompute`: the server computes the cache again.
 * `transfer`: the server reads the cache from the KV store of both servers.
 */
export type MoveMeans = 'bind' | 'recompute' | 'transfer';

/** A move with its assumptions. A change of the attempt or an epoch ends the move. */
export interface PlannedMove {
  /** The request to move. */
  requestId: RequestId;
  /** Id of the running attempt. */
  attempt: AttemptId;
  /** The server on which the request runs. */
  fromServerId: ServerId;
  /** Epoch of `fromServerId`. */
  fromEpoch: Epoch;
  /** Id of the target server. */
  toServerId: ServerId;
  /** Epoch of the target server. */
  toEpoch: Epoch;
  /**
   * Reason of the move. `leave`: the server is drained. `tier`: for a smaller batch tier. `wait`: the request does not
   * wait on the target.
   */
  purpose: 'leave' | 'tier' | 'wait';
  means: MoveMeans;
  /** Cost of the move: engine time of the new server, seconds. */
  costSeconds: number;
  /**
   * Share of the move in the gain of the plan, seconds. Moves with the purpose `tier` have equal shares, because they
   * gain only together.
   */
  gainSeconds: number;
}

/**
 * Why a plan has no moves. `balanced`: no server is above the smallest batch tier that the load allows, and no waiting
 * request could run elsewhere. `no-room`: no KV cache is large enough for the final length of the requests.
 * `held-back`: too few requests may be moved: most are nearly done, or moved recently or often. `not-worth-it`: the
 * moves cost more than they gain.
 */
export type NoMoveReason = 'balanced' | 'no-room' | 'held-back' | 'not-worth-it';

/** Expected result of a plan. */
export interface RebalanceSummary {
  /** The policy that made the plan. */
  policy: RebalancePolicy;
  /** The largest batch tier of all servers at present. A batch above all tiers counts with its size. */
  tierBefore: Integer;
  /** The largest batch tier after the moves. */
  tierAfter: Integer;
  /** Wall time that the plan is expected to save, seconds. */
  gainSeconds: number;
  /** Engine time of all moves, seconds. */
  costSeconds: number;
  /**
   * Longest time that one server spends on the requests that it takes, seconds: the cost in wall time, without
   * `pauseSeconds`.
   */
  stallSeconds: number;
  /** Why the plan has no moves. */
  reason?: NoMoveReason;
}

/**
 * `rebalance.configure`: changes the given settings of the rebalancer; absent settings stay. An empty body returns the
 * settings. A repeat changes nothing. Errors: VERSION_MISMATCH.
 */
export class ConfigureRebalanceRequest {
  /** `off`: no plans. `on`: make plans and move requests. `dry-run`: only make, store and count plans. */
  @IsOptional() @IsIn(['off', 'dry-run', 'on']) mode?: 'off' | 'dry-run' | 'on';
  /** Policy that plans moves. */
  @IsOptional() @IsIn(REBALANCE_POLICIES) policy?: RebalancePolicy;
  /** Batch sizes for which the engines have captured graphs; strictly descending. */
  @IsOptional() @IsList(64, 1) @IsCounter(1, { each: true }) tiers?: Integer[];
  /** A decode step takes `stepBaseSeconds` + `stepPerSequenceSeconds` x tier. */
  @IsOptional() @IsNumber() @Min(0) @Max(100) stepBaseSeconds?: number;
  /** Time of a decode step for each sequence of its tier, seconds. */
  @IsOptional() @IsNumber() @Min(0) @Max(100) stepPerSequenceSeconds?: number;
  /** Prefill speed of an engine, tokens per second. */
  @IsOptional() @IsNumber() @Min(1) prefillTokensPerSecond?: number;
  /**
   * Size of the KV cache of one token in a KV store, bytes; 0: every move computes the cache again. Servers with the
   * same label `kv-store` share a store.
   */
  @IsOptional() @IsNumber() @Min(0) kvBytesPerToken?: number;
  /** Bytes that an engine reads from its KV store per second; 0: every move computes the cache again. */
  @IsOptional() @IsNumber() @Min(0) kvBytesPerSecond?: number;
  /** Time before the first byte of a cache is read from the KV store, seconds. */
  @IsOptional() @IsNumber() @Min(0) @Max(100) kvSetupSeconds?: number;
  /** Minimum ratio of the gain of a plan to its longest stall. */
  @IsOptional() @IsNumber() @Min(0) minGainRatio?: number;
  /** Fixed time that every plan costs, seconds. */
  @IsOptional() @IsNumber() @Min(0) pauseSeconds?: number;
  /** Maximum moves of one request. */
  @IsOptional() @IsWithin(0, 1_000) maxMovesPerRequest?: Integer;
  /** Minimum time between two moves of one request, milliseconds. */
  @IsOptional() @IsCounter(0) minMoveIntervalMs?: Integer;
  /** A request with fewer expected remaining tokens stays. */
  @IsOptional() @IsCounter(0) minRemainingTokens?: Integer;
  /** Move requests away from draining servers. */
  @IsOptional() @IsBoolean() movesDrained?: boolean;
  /**
   * For `tier-min`: maximum requests that an engine runs at once, `max_num_running_reqs` of the published rule; 0: the
   * largest tier.
   */
  @IsOptional() @IsCounter(0) maxRunning?: Integer;
  /** Minimum time between two plans, milliseconds. */
  @IsOptional() @IsCounter(100) minPlanIntervalMs?: Integer;
  /** Time after the last plan until a plan is made without a trigger, milliseconds. */
  @IsOptional() @IsCounter(100) planIntervalMs?: Integer;
  /**
   * Decode steps between two plans, `check_interval` of the published rule. Only a drain triggers a plan before. 0:
   * changes and `planIntervalMs` trigger plans.
   */
  @IsOptional() @IsCounter(0) planIntervalSteps?: Integer;
  /** Required version of the settings. Otherwise VERSION_MISMATCH, unless the settings are already as requested. */
  @IsOptional() @IsCounter(0) ifVersion?: Integer;
}

/** Settings of the rebalancer of a pool (libs/policies/src/rebalance/README.md). */
export interface RebalanceSettings extends Required<Omit<ConfigureRebalanceRequest, 'ifVersion'>> {
  /** Version of the settings, increased by 1 with each change; 0: the defaults. */
  version: Integer;
}

/** A call about a plan, which returns one page of its moves. */
class PlanRequest {
  /** Id of the plan. */
  @IsId() planId!: string;
  /**
   * Maximum moves in the page.
   * @default 128
   */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}

/**
 * `rebalance.plan`: makes a plan and stores the plan for an hour, without moving requests. A repeat gets the same plan.
 */
export class PlanRebalanceRequest extends PlanRequest {
  /** Policy of this plan; default: the policy of the settings. */
  @IsOptional() @IsIn(REBALANCE_POLICIES) policy?: RebalancePolicy;
  /** Batch tiers of this plan, strictly descending; default: the tiers of the settings. */
  @IsOptional() @IsList(64, 1) @IsCounter(1, { each: true }) tiers?: Integer[];
}

/** A requested move, with either `requestId` or `leaseId`. */
export class WantedMove extends MoveTarget {
  /** The request to move. */
  @IsOptional() @IsCorrelationId() requestId?: RequestId;
  /** The lease of a caller that only routes. */
  @IsOptional() @IsCorrelationId() leaseId?: LeaseId;
  /** Required attempt. */
  @IsOptional() @IsAttempt() attempt?: AttemptId;
}

/**
 * `rebalance.execute`: executes a stored plan, or the given moves under a new planId. A repeat sends nothing twice.
 */
export class ExecuteRebalanceRequest extends PlanRequest {
  /** Moves to execute instead of a stored plan; each request and each lease at most once. */
  @IsOptional() @IsListOf(() => WantedMove, LIMITS.page, 1) moves?: WantedMove[];
}

/** `rebalance.status`: returns a plan with the state of each move. */
export class RebalanceStatusRequest extends PlanRequest {
  /** Cursor of the previous page. */
  @IsOptional() @IsCounter(0) cursor?: Integer;
}

export const MOVE_STATES = ['planned', 'sent', 'moved', 'completed-first', 'superseded', 'expired', 'refused'] as const;
/**
 * State of a move. `planned`: no command was sent. `sent`: the command is repeated until the worker confirms. `moved`:
 * the request is bound to the new server, or runs there. `completed-first`: the request finished before the move.
 * `superseded`: a cut, an abort or a failure came before the move. `expired`: the worker did not confirm in time, and
 * the request stays on its server. `refused`: nothing was done.
 */
export type MoveState = (typeof MOVE_STATES)[number];

/**
 * Why a move was refused. `victim-changed`: another attempt runs. `ending`: the request is being cut, aborted or moved.
 * `server-not-found`: the server is unknown or in another pool. `server-changed`: the server has another epoch.
 * `server-<state>`: the server is not ready.
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

/** Times of a move, up to the first token on the new server. */
export interface MoveTimes {
  /** Time from the command to the end of the old attempt, milliseconds; 0 for a request that no worker ran. */
  stopMs: Integer;
  /** Time from the end of the old attempt to the next claim, milliseconds. */
  placeMs: Integer;
  /** Time from the claim to the lease of the new attempt, milliseconds. */
  resumeMs: Integer;
  /** Time from the lease to the first token, milliseconds. */
  firstTokenMs: Integer;
}

/** A move of a plan with its state. */
export interface MoveStatus extends Partial<PlannedMove> {
  /** Id of the target server. */
  toServerId: ServerId;
  /** The lease, for a caller that only routes. */
  leaseId?: LeaseId;
  /** State of the move. */
  state: MoveState;
  /** Why the move was refused. */
  refusal?: MoveRefusal;
  /** Times of the move, after the first token on the new server. */
  times?: MoveTimes;
}
/** A plan with its moves. */
export interface RebalanceStatus extends Partial<RebalanceSummary>, NumberedPageReply {
  /** Id of the plan, from the request. */
  planId: string;
  /** When the plan was made, milliseconds since 1970. */
  plannedAtMs: Integer;
  /** Number of moves of the plan. */
  moves: Integer;
  /** Number of moves that `rebalance.execute` has processed. */
  sentMoves: Integer;
  /** Number of moves, by state. */
  states: Partial<Record<MoveState, Integer>>;
  /** One page of the moves. */
  results: MoveStatus[];
}
