import { Injectable, Logger } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { SnapshotStore } from '@broomwagon/state';
import { CoordinatorMetrics } from '../coordinator.metrics';

/** The part of the sweep that deletes snapshots which are no longer kept, with the payloads only they named. */
@Injectable()
export class SnapshotSweepService {
  private readonly logger = new Logger(SnapshotSweepService.name);

  constructor(
    private readonly snapshots: SnapshotStore,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  /** In the background; what breaks off the periodic sweep takes up. */
  soon(pool: PoolName): void {
    this.unlinkOld(pool).catch((error: unknown) => {
      this.logger.warn({ err: error, pool }, 'Deleting an old job snapshot failed');
    });
  }

  /** @throws BroomwagonError UNAVAILABLE */
  async unlinkOld(pool: PoolName): Promise<void> {
    for await (const _ of this.snapshots.whileMore('unlink', pool)) {
      this.metrics.sweepPages.inc({ kind: 'unlink' });
      await failpoint('coordinator.unlink.between-pages');
    }
  }
}
