import { Injectable, Logger } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { MoveStore, type DueWork } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { GrantService } from '../requests/grant.service';
import { WorkerCommands } from '../upkeep/worker-commands';

/**
 * Carries plans out: the intent stands in Redis before a holder is told, and holders are told again until they have
 * confirmed. Safe in all replicas at once, as the rest of the sweep.
 */
@Injectable()
export class MoveSenderService {
  private readonly logger = new Logger(MoveSenderService.name);
  private readonly repeatedAtMs = new Map<PoolName, number>();

  constructor(
    private readonly store: MoveStore,
    private readonly commands: WorkerCommands,
    private readonly grants: GrantService,
    private readonly metrics: CoordinatorMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** Sends what of a plan was not sent. @throws BroomwagonError PLAN_NOT_FOUND, UNAVAILABLE */
  async send(pool: PoolName, planId: string, maxMovesPerRequest: number): Promise<void> {
    const args = { planId, maxMovesPerRequest, keptMs: this.config.planKeptMs };
    for await (const page of this.store.whileMore('send', pool, args)) {
      await failpoint('coordinator.move.after-intent');
      this.commands.abort(pool, 'move', page.aborts);
      this.commands.moveLeases(pool, page.leases);
      if (page.pending) this.grants.soon(pool);
      this.metrics.moves.inc({ outcome: 'sent' }, page.aborts.length + page.leases.length);
      this.metrics.moves.inc({ outcome: 'refused' }, page.refused);
    }
  }

  /** @throws BroomwagonError UNAVAILABLE */
  async sweep(pool: PoolName, due: DueWork): Promise<void> {
    if (due.moving === 0 || Date.now() - (this.repeatedAtMs.get(pool) ?? 0) < this.config.cutRepeatMs) return;
    this.repeatedAtMs.set(pool, Date.now());
    await this.repeatAborts(pool);
    await this.repeatTransfers(pool);
  }

  private async repeatAborts(pool: PoolName): Promise<void> {
    for await (const page of this.store.pages('repeat', pool, { deadlineMs: this.config.moveDeadlineMs })) {
      this.metrics.sweepPages.inc({ kind: 'move' });
      this.commands.abort(pool, 'move', page.aborts);
      if (page.pending > 0) this.grants.soon(pool);
      this.tellExpired(pool, page.expired);
    }
  }

  private async repeatTransfers(pool: PoolName): Promise<void> {
    for await (const page of this.store.pages('repeatLeases', pool, { deadlineMs: this.config.moveDeadlineMs })) {
      this.metrics.sweepPages.inc({ kind: 'move' });
      this.commands.moveLeases(pool, page.leases);
      this.tellExpired(pool, page.expired);
    }
  }

  private tellExpired(pool: PoolName, moves: number): void {
    if (moves > 0)
      this.logger.warn({ pool, moves }, 'Moves were not confirmed in time; the requests stay on their servers');
  }
}
