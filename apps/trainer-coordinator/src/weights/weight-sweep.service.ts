import { Injectable, Logger } from '@nestjs/common';
import { isBroomwagonError, type PoolName } from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { WeightStore, type DueWork } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { GrantService } from '../requests/grant.service';
import { ServerFences } from '../upkeep/server-fences';
import { WorkerCommands } from '../upkeep/worker-commands';

/**
 * The part of the sweep that follows a change of weights: tells the holders of what is to be stopped again until
 * nothing runs, and rolls back at the deadline, also when the trainer is gone. Safe in all replicas at once.
 */
@Injectable()
export class WeightSweepService {
  private readonly logger = new Logger(WeightSweepService.name);
  private readonly stoppedAtMs = new Map<PoolName, number>();

  constructor(
    private readonly weights: WeightStore,
    private readonly commands: WorkerCommands,
    private readonly fences: ServerFences,
    private readonly grants: GrantService,
    private readonly metrics: CoordinatorMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** @throws BroomwagonError UNAVAILABLE */
  async sweep(pool: PoolName, due: DueWork): Promise<void> {
    if (!due.weightSync) {
      this.stoppedAtMs.delete(pool);
      return;
    }
    const { sync } = await this.weights.status(pool);
    if (sync === undefined || (await this.isOver(pool, sync.syncId))) return;
    const isDue = Date.now() - (this.stoppedAtMs.get(pool) ?? 0) >= this.config.cutRepeatMs;
    if (sync.mode === 'abort' && sync.running > 0 && isDue) await this.stop(pool, sync.syncId);
  }

  /** Tells all holders. @throws BroomwagonError UNAVAILABLE */
  async stop(pool: PoolName, syncId: string): Promise<void> {
    this.stoppedAtMs.set(pool, Date.now());
    const args = { syncId, fenceAfterMs: this.config.abortDeadlineMs };
    for await (const page of this.weights.pages('stop', pool, args)) {
      this.metrics.sweepPages.inc({ kind: 'weights' });
      this.commands.abort(pool, 'cut', page.aborts);
      this.commands.abortLeases(pool, 'cut', page.leases);
      await this.fences.fence(pool, page.fences, 'weights');
      await failpoint('coordinator.weights.between-pages');
    }
  }

  private async isOver(pool: PoolName, syncId: string): Promise<boolean> {
    try {
      const { state, version } = await this.weights.rollbackOverdue(pool, syncId);
      if (state === 'begun') return false;
      this.logger.warn({ pool, syncId, version }, 'A change of weights was not committed in time and was rolled back');
      this.grants.soon(pool);
    } catch (error) {
      // Committed between the two looks.
      if (!isBroomwagonError(error) || error.retryable) throw error;
    }
    return true;
  }
}
