import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { LongtailStore, type DueWork } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { WorkerCommands } from '../upkeep/worker-commands';

/**
 * The part of the sweep that follows groups of which one sample was handed in: the holders of the others are told again
 * until each has confirmed. Safe in all replicas at once.
 */
@Injectable()
export class LongtailSweepService {
  private readonly repeatedAtMs = new Map<PoolName, number>();

  constructor(
    private readonly longtail: LongtailStore,
    private readonly commands: WorkerCommands,
    private readonly metrics: CoordinatorMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** @throws BroomwagonError UNAVAILABLE */
  async sweep(pool: PoolName, due: DueWork): Promise<void> {
    const { cutRepeatMs } = this.config;
    if (due.leaving === 0 || Date.now() - (this.repeatedAtMs.get(pool) ?? 0) < cutRepeatMs) return;
    this.repeatedAtMs.set(pool, Date.now());
    for await (const page of this.longtail.pages('repeat', pool)) {
      this.metrics.sweepPages.inc({ kind: 'leave' });
      this.commands.abort(pool, 'cut', page.aborts);
    }
  }
}
