import type {
  AttemptId,
  Epoch,
  LeaseId,
  RequestId,
  ServerId,
  TransferLeaseRequest,
  WantedMove,
} from '@broomwagon/contracts';
import type { AttemptFence } from '../requests/request.types';

/** A move as a plan keeps it; what it assumes is checked when it is sent. */
export interface KeptMove extends Pick<WantedMove, 'requestId' | 'leaseId' | 'attempt'> {
  toServerId: ServerId;
  toEpoch?: Epoch;
}

/** A lease whose holder is to transfer it. */
export interface LeaseTransfer extends Pick<
  TransferLeaseRequest,
  'workerId' | 'workerEpoch' | 'targetServerId' | 'targetEpoch'
> {
  planId: string;
  leaseId: LeaseId;
}

export interface SentMoves {
  aborts: AttemptFence[];
  leases: LeaseTransfer[];
  refused: number;
  /** Bound requests may be claimed now. */
  pending: boolean;
  more: boolean;
}

export interface RepeatedMoves {
  aborts: AttemptFence[];
  /** Moves given up: their holders had their time. */
  expired: number;
  /** Requests that may be claimed again. */
  pending: number;
  cursor?: number;
}

export interface RepeatedTransfers {
  leases: LeaseTransfer[];
  /** Moves given up: their holders had their time. */
  expired: number;
  cursor: string;
}

export interface PlanPage {
  summary: string;
  plannedAtMs: number;
  sentMoves: number;
  moves: number;
  states: Record<string, number>;
  page: { move: string; state: string }[];
  cursor?: number;
}

/** An attempt that runs under a lease. */
export interface RunningRequest {
  leaseId: LeaseId;
  requestId: RequestId;
  serverId: ServerId;
  epoch: Epoch;
  attempt: AttemptId;
  /** Tokens the engine held at its start, as the worker said. */
  contextTokens: number;
  /** Made by earlier attempts. */
  heldTokens: number;
  /** Made by this attempt, as far as it has said. */
  madeTokens: number;
  maxTokens: number;
  /** The longest finished sample of its group; 0 when there is none. */
  longestTokens: number;
  moves: number;
  sinceMoveMs?: number;
  /** Since it was claimed. */
  ageMs: number;
}
/** A call that is not ours to move. */
export interface OtherCall {
  serverId: ServerId;
  epoch: Epoch;
  contextTokens: number;
}
export interface CallsPage {
  running: RunningRequest[];
  others: OtherCall[];
  cursor: string;
}
