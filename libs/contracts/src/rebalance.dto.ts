import { IsBoolean, IsIn, IsNumber, IsOptional, Max, Min } from 'class-validator';
import { MoveTarget, type NumberedPageReply } from './common.dto';
import { LIMITS } from './limits';
import { IsAttempt, IsCorrelationId, IsCounter, IsId, IsList, IsListOf, IsWithin } from './rules';
import type { AttemptId, Epoch, Integer, LeaseId, RequestId, ServerId } from './scalars';

export const REBALANCE_POLICIES = ['tier-cost', 'tier-min'] as const;
/** How moves are planned (libs/policies/src/rebalance/README.md). */
export type RebalancePolicy = (typeof REBALANCE_POLICIES)[number];

/**
 * How the context gets to the new server: there was no cache (`bind`), it is computed again (`recompute`), or it is
 * read from the KV store that both servers share (`transfer`).
 */
export type MoveMeans = 'bind' | 'recompute' | 'transfer';

/** A move with its assumptions; it is dropped if any of them has changed. */
export interface PlannedMove {
  /** The request to move. */
  requestId: RequestId;
  /** The running attempt. */
  attempt: AttemptId;
  /** The server it runs on. */
  fromServerId: ServerId;
  /** Epoch of that server. */
  fromEpoch: Epoch;
  /** The target server. */
  toServerId: ServerId;
  /** Epoch of the target server. */
  toEpoch: Epoch;
  /**
   * Reason: `leave`: its server is drained; `tier`: for a smaller batch tier; `wait`: it does not wait on the target.
   */
  purpose: 'leave' | 'tier' | 'wait';
  means: MoveMeans;
  /** Cost: engine time of the new server, seconds. */
  costSeconds: number;
  /**
   * Share of the move in the gain of its plan, seconds; `tier` moves have equal shares, because they gain only
   * together.
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
  /** The largest batch tier of all servers at present; a batch above the largest tier counts with its size. */
  tierBefore: Integer;
  /** The largest batch tier after the moves. */
  tierAfter: Integer;
  /** Expected wall time saved, seconds. */
  gainSeconds: number;
  /** Engine time of all moves, seconds. */
  costSeconds: number;
  /**
   * Longest time that one server spends on the requests it takes, seconds: the cost in wall time, without the pause.
   */
  stallSeconds: number;
  /** Reason, if there are no moves. */
  reason?: NoMoveReason;
}

/**
 * `rebalance.configure`: changes the given settings of the rebalancer; absent ones stay; an empty body returns the
 * settings. A repeat changes nothing. Errors: VERSION_MISMATCH.
 */
export class ConfigureRebalanceRequest {
  /** `off`; `on`: make plans and move requests; `dry-run`: make, store and count plans only. */
  @IsOptional() @IsIn(['off', 'dry-run', 'on']) mode?: 'off' | 'dry-run' | 'on';
  /** How moves are planned. */
  @IsOptional() @IsIn(REBALANCE_POLICIES) policy?: RebalancePolicy;
  /** Batch sizes for which the engines have captured graphs; strictly descending. */
  @IsOptional() @IsList(64) @IsCounter(1, { each: true }) tiers?: Integer[];
  /** A decode step takes stepBaseSeconds + stepPerSequenceSeconds x tier. */
  @IsOptional() @IsNumber() @Min(0) @Max(100) stepBaseSeconds?: number;
  /** Time of a decode step for each sequence of its tier, seconds. */
  @IsOptional() @IsNumber() @Min(0) @Max(100) stepPerSequenceSeconds?: number;
  /** Prefill speed of an engine, tokens per second. */
  @IsOptional() @IsNumber() @Min(1) prefillTokensPerSecond?: number;
  /**
   * Servers with one value of the label `kv-store` keep their KV caches in one store: size of the cache of a token,
   * bytes; 0: every move computes the cache again.
   */
  @IsOptional() @IsNumber() @Min(0) kvBytesPerToken?: number;
  /** Bytes that an engine reads from its KV store per second; 0: every move computes the cache again. */
  @IsOptional() @IsNumber() @Min(0) kvBytesPerSecond?: number;
  /** Time to begin to read a cache from the KV store, seconds. */
  @IsOptional() @IsNumber() @Min(0) @Max(100) kvSetupSeconds?: number;
  /** The gain must be more than this many times the longest stall. */
  @IsOptional() @IsNumber() @Min(0) minGainRatio?: number;
  /** Further time that a plan costs, seconds. */
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
   * `tier-min`: most requests that an engine runs at once, `max_num_running_reqs` of the published rule; 0: the largest
   * tier.
   */
  @IsOptional() @IsCounter(0) maxRunning?: Integer;
  /** Minimum time between two plans, milliseconds. */
  @IsOptional() @IsCounter(100) minPlanIntervalMs?: Integer;
  /** Time after which a plan is made without a trigger, milliseconds. */
  @IsOptional() @IsCounter(100) planIntervalMs?: Integer;
  /**
   * Decode steps between two plans, `check_interval` of the published rule: then only a drain triggers one before.
   * 0: plans are triggered by changes and `planIntervalMs`.
   */
  @IsOptional() @IsCounter(0) planIntervalSteps?: Integer;
  /** Only if the settings have this version, or are already as asked; otherwise VERSION_MISMATCH. */
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

/** `rebalance.plan`: makes a plan and stores it for an hour without moving requests. A repeat gets the same plan. */
export class PlanRebalanceRequest extends PlanRequest {
  /** Policy to use instead of the policy of the settings. */
  @IsOptional() @IsIn(REBALANCE_POLICIES) policy?: RebalancePolicy;
  /** Batch tiers to use instead of the tiers of the settings, strictly descending. */
  @IsOptional() @IsList(64) @IsCounter(1, { each: true }) tiers?: Integer[];
}

/** A requested move: either requestId, or leaseId of a caller that only routes. */
export class WantedMove extends MoveTarget {
  /** The request to move. */
  @IsOptional() @IsCorrelationId() requestId?: RequestId;
  /** The lease of a caller that only routes. */
  @IsOptional() @IsCorrelationId() leaseId?: LeaseId;
  /** Only if this attempt runs. */
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
 * State of a move. `planned`: not sent. `sent`: its worker has the command, which is repeated until it confirms.
 * `moved`: pending and bound to its new server, or already on it. `completed-first`: the request finished before.
 * `superseded`: a cut, an abort or a failure came first. `expired`: its worker did not confirm in time, and the request
 * stays on its server. `refused`: nothing was done.
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

/** Times of a move that has its first token on the new server. */
export interface MoveTimes {
  /** From the command to the end of the old attempt, milliseconds; 0 for a request that nobody ran. */
  stopMs: Integer;
  /** Until a worker has claimed the request again, milliseconds. */
  placeMs: Integer;
  /** Until the new attempt has its lease and is sent to the engine, milliseconds. */
  resumeMs: Integer;
  /** Until its first token, milliseconds: the prefill, or the transfer from the KV store. */
  firstTokenMs: Integer;
}

/** A move of a plan with its state. */
export interface MoveStatus extends Partial<PlannedMove> {
  /** The target server. */
  toServerId: ServerId;
  /** The lease, for a caller that only routes. */
  leaseId?: LeaseId;
  /** State of the change. */
  state: MoveState;
  /** Why the move was refused, if it was. */
  refusal?: MoveRefusal;
  /** Times of the move, once it has its first token on the new server. */
  times?: MoveTimes;
}
/** A plan with its moves. */
export interface RebalanceStatus extends Partial<RebalanceSummary>, NumberedPageReply {
  /** Id of the plan, from the request. */
  planId: string;
  /** When the plan was made, milliseconds since 1970. */
  plannedAtMs: Integer;
  /** Moves of the plan. */
  moves: Integer;
  /** Moves that `rebalance.execute` has processed. */
  sentMoves: Integer;
  /** Moves by state. */
  states: Partial<Record<MoveState, Integer>>;
  /** One page of the moves. */
  results: MoveStatus[];
}
