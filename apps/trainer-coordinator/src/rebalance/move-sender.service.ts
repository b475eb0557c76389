import { Injectable, Logger } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { MoveStore } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { GrantService } from '../grants/grant.service';
import { WorkerCommands } from '../commands/worker-commands';
import { PagedWork } from '../upkeep/paged-work';

/**
 * Executes plans. A move is recorded in Redis, then its holder gets a command, which is repeated until the holder
 * confirms the move. All replicas may do so at once.
 */
@Injectable()
export class MoveSenderService {
  private readonly logger = new Logger(MoveSenderService.name);

  constructor(
    private readonly store: MoveStore,
    private readonly commands: WorkerCommands,
    private readonly grants: GrantService,
    private readonly metrics: CoordinatorMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** Sends the moves of a plan that were not sent. @throws BroomwagonError PLAN_NOT_FOUND, UNAVAILABLE */
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

  /** Repeats the commands to holders. @throws BroomwagonError UNAVAILABLE */
  @PagedWork({ order: 70, isRepeat: true, isDue: ({ moving }) => moving > 0 })
  async repeat(pool: PoolName): Promise<void> {
    const args = { deadlineMs: this.config.moveDeadlineMs };
    for await (const page of this.store.pages('repeat', pool, args)) {
      this.metrics.sweepPages.inc({ kind: 'move' });
      this.commands.abort(pool, 'move', page.aborts);
      if (page.pending > 0) this.grants.soon(pool);
      this.logExpired(pool, page.expired);
    }
    for await (const page of this.store.pages('repeatLeases', pool, args)) {
      this.metrics.sweepPages.inc({ kind: 'move' });
      this.commands.moveLeases(pool, page.leases);
      this.logExpired(pool, page.expired);
    }
  }

  private logExpired(pool: PoolName, moves: number): void {
    if (moves > 0)
      this.logger.warn({ pool, moves }, 'Moves were not confirmed in time; the requests stay on their servers');
  }
}
