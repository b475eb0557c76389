import { Injectable } from '@nestjs/common';
import { LIMITS } from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { scanPages } from '../library/scan-pages';
import { storeOf } from '../library/store-of';
import type {
  KeptMove,
  OtherCall,
  PlanPage,
  RepeatedMoves,
  RepeatedTransfers,
  RunningRequest,
  SentMoves,
  CallsPage,
} from './move.types';

const save = transition<
  { planId: string; offset: number; moves: string[]; summary?: string; digest: string; keptMs: number },
  { summary?: string; known?: boolean }
>('moves/save-plan');
const calls = transition<{ cursor: string }, CallsPage>('moves/calls');

/** Plans and the moves of requests: one script a method, safe to repeat. */
@Injectable()
export class MoveStore extends storeOf({
  /** One page of carrying a plan out. */
  send: transition<{ planId: string; maxMovesPerRequest: number; keptMs: number }, SentMoves>('moves/send'),
  /** One page of what is not confirmed, to be told again. */
  repeat: transition<{ cursor: number; deadlineMs: number }, RepeatedMoves>('moves/repeat'),
  /** One page of leases that are not moved yet; begin with cursor `0`, which also ends it. */
  repeatLeases: transition<{ cursor: string; deadlineMs: number }, RepeatedTransfers>('moves/repeat-leases'),
  status: transition<{ planId: string; cursor: number; limit: number }, PlanPage>('moves/status'),
  /** The settings of the rebalancer: JSON that is kept. With `turnMs`: whether the caller is to plan, for so long. */
  settings: transition<{ settings?: string; turnMs?: number }, { settings?: string; turn?: true }>('moves/settings'),
}) {
  /**
   * Keeps a plan; one that is there stays. Returns the summary that is kept.
   * @param digest of what was asked for @throws BroomwagonError VALIDATION_FAILED: the planId meant something else
   */
  async save(
    pool: string,
    plan: { planId: string; moves: readonly KeptMove[]; summary: string; digest: string; keptMs: number },
  ): Promise<{ summary: string; known: boolean }> {
    const { planId, digest, keptMs } = plan;
    const moves = plan.moves.map((move) => JSON.stringify(move));
    for (let offset = 0; ; offset += LIMITS.page) {
      const isLast = offset + LIMITS.page >= moves.length;
      const page = { planId, offset, moves: moves.slice(offset, offset + LIMITS.page), digest, keptMs };
      const kept = await this.runner.run(save, pool, isLast ? { ...page, summary: plan.summary } : page);
      if (kept.summary !== undefined) return { summary: kept.summary, known: kept.known ?? false };
    }
  }

  /** All that runs, read in pages while it goes on running. */
  async calls(pool: string): Promise<{ running: RunningRequest[]; others: OtherCall[] }> {
    // A lease may come twice in a scan.
    const running = new Map<string, RunningRequest>();
    const others: OtherCall[] = [];
    for await (const page of scanPages((cursor) => this.runner.run(calls, pool, { cursor }))) {
      for (const one of page.running) running.set(one.leaseId, one);
      others.push(...page.others);
    }
    return { running: [...running.values()], others };
  }
}
