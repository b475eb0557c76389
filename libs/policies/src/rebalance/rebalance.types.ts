import type { AttemptId, Epoch, PlannedMove, RebalanceSummary, RequestId, ServerId } from '@broomwagon/contracts';

/** State of a request on its server. Only a running request has a KV cache. */
export type RequestPhase = 'waiting' | 'preempted' | 'running';

export interface RebalanceRequest {
  requestId: RequestId;
  /** Running attempt. A move of another attempt is refused. */
  attempt: AttemptId;
  phase: RequestPhase;
  promptTokens: number;
  /** Tokens generated so far, of all attempts. */
  madeTokens: number;
  /** Expected number of tokens that are still to be generated. */
  remainingTokens: number;
  moves: number;
  /** Time since the last move, milliseconds. */
  sinceMoveMs?: number;
}

export interface RebalanceServer {
  serverId: ServerId;
  epoch: Epoch;
  /** False if the server takes no new requests. */
  accepts: boolean;
  /** True if all requests must leave (a drain). Then `accepts` is false. */
  leaving?: boolean;
  /** Maximum requests at the same time. */
  capacity: number;
  /** Size of the KV cache, tokens; absent: no bound. */
  kvCapacityTokens?: number;
  /** KV cache in use, 0 to 1, as the engine reports; only `tier-min` uses it. */
  kvUse?: number;
  /** Number of calls that cannot be moved. */
  otherCalls?: number;
  /** KV tokens of the calls that cannot be moved. */
  otherKvTokens?: number;
  /** KV store of the server, which other servers may share; absent: none. */
  kvStore?: string;
  /** Requests in the order in which the engine took them; waiting requests in the order of the queue. */
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
