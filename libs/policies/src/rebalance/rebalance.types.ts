import type { AttemptId, Epoch, PlannedMove, RebalanceSummary, RequestId, ServerId } from '@broomwagon/contracts';

/** State of a request on its server. Only a running one has a KV cache to lose. */
export type RequestPhase = 'waiting' | 'preempted' | 'running';

/** A request that could be moved. */
export interface RebalanceRequest {
  requestId: RequestId;
  /** Fence of the move: another attempt is another run. */
  attempt: AttemptId;
  phase: RequestPhase;
  promptTokens: number;
  /** Tokens made so far, of all attempts. */
  madeTokens: number;
  /** Tokens it is expected to make still. */
  remainingTokens: number;
  /** Times it was moved. */
  moves: number;
  /** Time since its last move, milliseconds; absent when it never was moved. */
  sinceMoveMs?: number;
}

/** A server and the requests on it. */
export interface RebalanceServer {
  serverId: ServerId;
  epoch: Epoch;
  /** False: takes no new requests. */
  accepts: boolean;
  /** A drain: all its requests must leave the server. Implies that it accepts none. */
  leaving?: boolean;
  /** Most requests at once. */
  capacity: number;
  /** KV cache, tokens; absent: not known, and not a bound. */
  kvCapacityTokens?: number;
  /** KV cache in use, 0 to 1, as the engine reports; only `tier-min` uses it. */
  kvUse?: number;
  /** Calls on it that cannot be moved. */
  otherCalls?: number;
  /** KV cache of the calls that cannot be moved, tokens. */
  otherKvTokens?: number;
  /** The KV store it reads from and writes to, which other servers may share; absent: none. */
  kvStore?: string;
  /** Requests in the order in which the engine took them; waiting ones in the order of its queue. */
  requests: readonly RebalanceRequest[];
}

/** Servers that may exchange requests: one pool, one weight version. */
export interface RebalanceSnapshot {
  servers: readonly RebalanceServer[];
}

export interface RebalancePlan extends RebalanceSummary {
  moves: PlannedMove[];
}

export type { MoveMeans, NoMoveReason, PlannedMove, RebalancePolicy } from '@broomwagon/contracts';
