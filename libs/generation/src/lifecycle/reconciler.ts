import { Injectable, Logger } from '@nestjs/common';
import { type AttemptId, isBroomwagonError, type RequestId, type SyncWorkerReply } from '@broomwagon/contracts';
import { HeldLeases } from '../leases/held-leases';
import type { WorkerEpoch } from '../leases/leased-call';
import { ControlPlane } from '../holder/control-plane';
import { HeldAttempts } from '../leases/held-attempts';
import { HolderConfig } from '../holder/holder.config';
import { HolderMetrics } from '../holder/holder-metrics';
import { isExpiredEpoch, WorkerSession } from '../leases/worker-session';

const CALL_DEADLINE_MS = 5_000;
type SyncItem = SyncWorkerReply['items'][number];

/**
 * Compares the leases and attempts of this worker in Redis and in its memory. If only Redis has an item, its reply was
 * lost: the item is returned once it is too old to be on its way. If only the worker has an item, the item is stopped.
 */
@Injectable()
export class Reconciler {
  private readonly logger = new Logger(Reconciler.name);

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly session: WorkerSession,
    private readonly attempts: HeldAttempts,
    private readonly leases: HeldLeases,
    private readonly metrics: HolderMetrics,
    private readonly config: HolderConfig,
  ) {}

  /** @param serverTimeMs clock of Redis at the start. Never throws: the next mismatch repeats the sync. */
  async reconcile(worker: WorkerEpoch, serverTimeMs: number): Promise<void> {
    const oldBeforeMs = serverTimeMs - this.config.unclaimedAfterMs;
    try {
      await this.reconcileLeases(worker, oldBeforeMs);
      await this.reconcileAttempts(worker, oldBeforeMs);
    } catch (error) {
      if (isExpiredEpoch(error)) this.session.fence(worker);
      else this.logger.warn({ err: error }, 'The reconciliation failed');
    }
  }

  private async reconcileLeases(worker: WorkerEpoch, oldBeforeMs: number): Promise<void> {
    // The list is copied before Redis is read, so that later grants are no mismatch.
    const held = this.leases.list();
    const known = new Set<string>();
    for await (const item of this.known(worker, 'leases')) {
      known.add(item.id);
      if (item.sinceMs < oldBeforeMs && !this.leases.knows(item.id)) {
        const body = { leaseId: item.id, outcome: 'unclaimed' as const };
        await this.controlPlane.callWithRetry('lb.release', body, { deadlineMs: CALL_DEADLINE_MS });
        this.metrics.unclaimed.inc({ kind: 'lease' });
      }
    }
    for (const lease of held) {
      if (!known.has(lease.leaseId) && this.leases.holds(lease)) lease.call.stop('lease-lost');
    }
  }

  private async reconcileAttempts(worker: WorkerEpoch, oldBeforeMs: number): Promise<void> {
    const held = this.attempts.list();
    const known = new Set<string>();
    for await (const { id, attempt = '', sinceMs } of this.known(worker, 'attempts')) {
      known.add(`${id}#${attempt}`);
      if (sinceMs < oldBeforeMs && !this.attempts.has(id, attempt)) await this.returnAttempt(worker, id, attempt);
    }
    for (const attempt of held) if (!known.has(attempt.key)) attempt.stop('expired');
  }

  private async returnAttempt(worker: WorkerEpoch, requestId: RequestId, attempt: AttemptId): Promise<void> {
    const body = { requestId, attempt, ...worker, reason: 'unclaimed' as const, retryable: true };
    try {
      await this.controlPlane.callWithRetry('request.fail', body, { deadlineMs: CALL_DEADLINE_MS });
      this.metrics.unclaimed.inc({ kind: 'attempt' });
    } catch (error) {
      // The attempt has ended or was claimed again between the two calls. INTERNAL must not stop the return of other
      // attempts.
      const isInternal = isBroomwagonError(error, 'INTERNAL');
      if (isInternal) this.logger.error({ requestId, attempt, err: error }, 'The attempt was not returned');
      else if (!isBroomwagonError(error) || error.retryable) throw error;
    }
  }

  private async *known(worker: WorkerEpoch, kind: 'leases' | 'attempts'): AsyncGenerator<SyncItem> {
    let cursor: string | undefined;
    do {
      const body = { ...worker, kind, cursor };
      const page = await this.controlPlane.callWithRetry('worker.sync', body, { deadlineMs: CALL_DEADLINE_MS });
      yield* page.items;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
}
