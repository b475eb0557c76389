import type { RequestId, ServerId } from '@broomwagon/contracts';

/** Where a request stands on its server. Only a running one has a KV cache to lose. */
export type RequestPhase = 'waiting' | 'preempted' | 'running';

/** A request that could be moved. */
export interface RebalanceRequest {
  requestId: RequestId;
  /** Fence of the move: another attempt is another run. */
  attempt: number;
  phase: RequestPhase;
  promptTokens: number;
  /** Tokens made so far, of all attempts. */
  madeTokens: number;
  /** Tokens it is expected to make still. */
  remainingTokens: number;
  /** Times it was moved. */
  moves: number;
  /** Since it was moved last, milliseconds; absent when it never was. */
  sinceMoveMs?: number;
}

/** A server and what runs there. */
export interface RebalanceServer {
  serverId: ServerId;
  epoch: number;
  /** False: takes no new requests. */
  accepts: boolean;
  /** All its requests are to leave it: a drain. Implies that it accepts none. */
  leaving?: boolean;
  /** Most requests at once. */
  capacity: number;
  /** KV cache, tokens; absent: not known, and not a bound. */
  kvCapacityTokens?: number;
  /** KV cache in use, 0 to 1, as the engine says; only `tier-min` decides by it. */
  kvUse?: number;
  /** Calls on it that cannot be moved. */
  otherCalls?: number;
  /** KV cache of these, tokens. */
  otherKvTokens?: number;
  /** In the order in which the engine took them; the waiting ones in the order of its queue. */
  requests: readonly RebalanceRequest[];
}

/** Servers that may exchange requests: one pool, one weight version. */
export interface RebalanceSnapshot {
  servers: readonly RebalanceServer[];
}

/** How tokens get to the new server: they had no cache, it is computed again, or (a later engine feature) carried over. */
export type MoveMeans = 'bind' | 'recompute' | 'transfer';

/** One move with what it assumes: it is dropped when any of it has changed. */
export interface PlannedMove {
  requestId: RequestId;
  attempt: number;
  fromServerId: ServerId;
  fromEpoch: number;
  toServerId: ServerId;
  toEpoch: number;
  /** `leave`: its server is drained; `tier`: for a smaller batch; `wait`: it need not wait there. */
  purpose: 'leave' | 'tier' | 'wait';
  means: MoveMeans;
  /** Engine time of the new server, seconds. */
  costSeconds: number;
  /** Its part of the gain, seconds; of a `tier` move an even share, since none gains without the others. */
  gainSeconds: number;
}

/** Why a plan moves nothing. */
export type NoMoveReason =
  /** No server is above the smallest batch tier that the load allows, and nothing waits in vain. */
  | 'balanced'
  /** No lower tier can be reached: no room, no KV cache for what the requests will grow to. */
  | 'no-room'
  /** It could be reached, if requests might be moved that are nearly done, or were moved lately or often. */
  | 'held-back'
  /** It can be reached, but the moves cost more than they bring. */
  | 'not-worth-it';

export interface RebalancePlan {
  policy: RebalancePolicy;
  moves: PlannedMove[];
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

export const REBALANCE_POLICIES = ['tier-cost', 'tier-min'] as const;
export type RebalancePolicy = (typeof REBALANCE_POLICIES)[number];
