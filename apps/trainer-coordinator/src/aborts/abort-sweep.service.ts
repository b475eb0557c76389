import { Injectable, Logger } from '@nestjs/common';
import type { PoolName, RequestId } from '@broomwagon/contracts';
import { MessagingClient } from '@broomwagon/messaging';
import { failpoint } from '@broomwagon/platform';
import { AbortStore, refusalOf, type AbortCommands, type DueWork, type RepeatPage } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { ServerFences } from '../upkeep/server-fences';
import { WorkerCommands } from '../upkeep/worker-commands';

/**
 * The part of the sweep that follows aborts: continues the selection of a failed replica, repeats commands to holders
 * until they confirm, forgets dropped groups when they expire. Safe in all replicas at once, as the rest of the sweep.
 */
@Injectable()
export class AbortSweepService {
  private readonly logger = new Logger(AbortSweepService.name);
  private readonly repeatedAtMs = new Map<PoolName, number>();

  constructor(
    private readonly aborts: AbortStore,
    private readonly commands: WorkerCommands,
    private readonly fences: ServerFences,
    private readonly messaging: MessagingClient,
    private readonly metrics: CoordinatorMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** All of it, also when one abort cannot be followed. @throws the first error, at the end: UNAVAILABLE, INTERNAL */
  async sweep(pool: PoolName, due: DueWork): Promise<void> {
    const errors: unknown[] = [];
    const attempt = (work: Promise<unknown>) => work.catch((error: unknown) => errors.push(error));
    for (const abortId of due.aborts) await attempt(this.select(pool, abortId));
    if (due.aborting > 0 && Date.now() - (this.repeatedAtMs.get(pool) ?? 0) >= this.config.cutRepeatMs) {
      this.repeatedAtMs.set(pool, Date.now());
      await attempt(this.repeat(pool));
    }
    if (due.dropped > 0) await attempt(this.forget(pool));
    if (errors.length > 0) throw errors[0];
  }

  /** Selects all that an abort means, and tells the holders. @throws BroomwagonError UNAVAILABLE */
  async select(pool: PoolName, abortId: string): Promise<void> {
    for await (const page of this.aborts.whileMore('select', pool, { abortId })) {
      this.tell(pool, page);
      for (const { replyTo, error } of page.answers) this.messaging.reply(replyTo, refusalOf({ error }));
      await failpoint('coordinator.abort.between-pages');
    }
  }

  private async repeat(pool: PoolName): Promise<void> {
    const { abortDeadlineMs: deadlineMs } = this.config;
    let cursors: { groupCursor: number; leaseCursor: number } | undefined = { groupCursor: 0, leaseCursor: 0 };
    while (cursors !== undefined) {
      const page = await this.aborts.repeat(pool, { ...cursors, deadlineMs });
      this.tell(pool, page);
      await this.endOverdue(pool, page);
      const { groupCursor, leaseCursor } = page;
      const more = groupCursor !== undefined || leaseCursor !== undefined;
      // A list that is at its end is not looked at from its start again.
      cursors = more ? { groupCursor: groupCursor ?? END, leaseCursor: leaseCursor ?? END } : undefined;
    }
  }

  /**
   * Holders that live and do not confirm: what they run is expired with the epoch of its server, so the answer is
   * final.
   */
  private async endOverdue(pool: PoolName, { overdue, overdueLeases }: RepeatPage): Promise<void> {
    if (overdue.length + overdueLeases.length === 0) return;
    const leases = overdue.length === 0 ? [] : await this.aborts.leasesOf(pool, idsOf(overdue));
    await this.fences.fence(pool, [...leases, ...overdueLeases], 'abort');
    const fenced = new Set(idsOf(leases));
    const { ended } = await this.aborts.endOverdue(pool, {
      attempts: overdue.map((one) => ({ ...one, fenced: fenced.has(one.requestId) })),
      leaseIds: overdueLeases.map(({ leaseId }) => leaseId),
    });
    this.logger.warn({ pool, requests: ended, fenced: fenced.size }, 'Aborts were not confirmed within their deadline');
    this.metrics.abortsUnconfirmed.inc(ended);
  }

  private async forget(pool: PoolName): Promise<void> {
    for await (const _ of this.aborts.whileMore('forget', pool)) this.metrics.sweepPages.inc({ kind: 'forget' });
  }

  private tell(pool: PoolName, { aborts, leases }: AbortCommands): void {
    this.metrics.sweepPages.inc({ kind: 'abort' });
    this.commands.abort(pool, 'abort', aborts);
    this.commands.abortLeases(pool, 'abort', leases);
  }
}

function idsOf(items: readonly { requestId: RequestId }[]): RequestId[] {
  return items.map(({ requestId }) => requestId);
}

/** Beyond every position. */
const END = 2 ** 40;
