import { Injectable } from '@nestjs/common';
import {
  LIMITS,
  type AttemptId,
  type Epoch,
  type LeaseId,
  type RequestId,
  type ServerId,
  type TransferLeaseRequest,
  type WantedMove,
} from '@broomwagon/contracts';
import type { RememberedPrompt } from '../ledger/prompt-memory.store';
import { transition } from '../library/function-runner';
import { storeOf } from '../library/store-of';
import type { AttemptFence } from '../requests/request.store';

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
  cursor?: string;
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
  /** Tokens the engine held at its start, as reported by the worker. */
  contextTokens: number;
  /** Made by earlier attempts. */
  heldTokens: number;
  /** Made by this attempt, as of its last save. */
  madeTokens: number;
  maxTokens: number;
  /** The longest finished sample of its group; 0 when there is none. */
  longestTokens: number;
  /** Of its group. */
  samples: number;
  /** What the prompt memory has of its prompt; absent for a prompt that was never seen. */
  known?: Omit<RememberedPrompt, 'hash'>;
  moves: number;
  sinceMoveMs?: number;
  /** Since it was claimed. */
  ageMs: number;
  /** Its engine has sent no token for some time, as its worker has reported. */
  waits: boolean;
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
  cursor?: string;
}

const save = transition<
  { planId: string; offset: number; moves: string[]; summary?: string; digest: string; keptMs: number },
  { whole: boolean }
>('moves/save-plan');

interface SettingsChange {
  settings?: string;
  ifVersion?: number;
  turnMs?: number;
  isPlanned?: true;
}

interface StoredSettings {
  settings?: string;
  turn?: true;
  plannedAtMs?: number;
}

/** Plans and the moves of requests: one script a method, safe to repeat. */
@Injectable()
export class MoveStore extends storeOf({
  callPage: transition<{ cursor?: string }, CallsPage>('moves/calls'),
  /** One page of carrying a plan out. */
  send: transition<{ planId: string; maxMovesPerRequest: number; keptMs: number }, SentMoves>('moves/send'),
  /** One page of what is not confirmed, to be told again. */
  repeat: transition<{ cursor?: number; deadlineMs: number }, RepeatedMoves>('moves/repeat'),
  /** One page of leases that are not moved yet. */
  repeatLeases: transition<{ cursor?: string; deadlineMs: number }, RepeatedTransfers>('moves/repeat-leases'),
  status: transition<{ planId: string; cursor: number; limit: number }, PlanPage>('moves/status'),
  /**
   * The settings of the rebalancer: JSON, stored only over the version `ifVersion`. With `turnMs`: whether the caller
   * is to plan, for so long; with `isPlanned` it has done so, which the others learn from `plannedAtMs`.
   */
  settings: transition<SettingsChange, StoredSettings>('moves/settings'),
}) {
  /**
   * Keeps a plan; one that is there stays.
   * @param digest of what was asked for @throws BroomwagonError VALIDATION_FAILED: the planId meant something else
   */
  async save(
    pool: string,
    plan: { planId: string; moves: readonly KeptMove[]; summary: string; digest: string; keptMs: number },
  ): Promise<void> {
    const { planId, digest, keptMs } = plan;
    const moves = plan.moves.map((move) => JSON.stringify(move));
    for (let offset = 0; ; offset += LIMITS.page) {
      const isLast = offset + LIMITS.page >= moves.length;
      const page = { planId, offset, moves: moves.slice(offset, offset + LIMITS.page), digest, keptMs };
      if ((await this.runner.run(save, pool, isLast ? { ...page, summary: plan.summary } : page)).whole) return;
    }
  }

  /** All running calls, read in pages while they run. */
  async calls(pool: string): Promise<{ running: RunningRequest[]; others: OtherCall[] }> {
    // A lease may come twice in a scan.
    const running = new Map<string, RunningRequest>();
    const others: OtherCall[] = [];
    for await (const page of this.pages('callPage', pool)) {
      for (const one of page.running) running.set(one.leaseId, one);
      others.push(...page.others);
    }
    return { running: [...running.values()], others };
  }
}
