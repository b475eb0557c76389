import { Injectable, Logger } from '@nestjs/common';
import type {
  SnapshotJobReply,
  SnapshotJobRequest,
  PoolName,
  RestoreJobReply,
  RestoreJobRequest,
} from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { SnapshotStore } from '@broomwagon/state';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { PagedWork } from '../upkeep/paged-work';

/** Maximum time for which a call handles pages, milliseconds. Then the call answers with its progress. */
const BUSY_MS = 2_000;

/** Saves, restores and deletes snapshots, page by page. A repeated call continues where the last call stopped. */
@Injectable()
export class SnapshotService {
  private readonly logger = new Logger(SnapshotService.name);

  constructor(
    private readonly snapshots: SnapshotStore,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  /** @throws BroomwagonError as the transition `snapshots/save` */
  async save(pool: PoolName, request: SnapshotJobRequest): Promise<SnapshotJobReply> {
    const endsAtMs = Date.now() + BUSY_MS;
    for (let { stamp } = request; ;) {
      const { retired, ...reply } = await this.snapshots.save(pool, { ...request, stamp });
      ({ stamp } = reply);
      await this.afterPage(pool, 'snapshot', retired);
      if (reply.state === 'complete' || Date.now() >= endsAtMs) return reply;
    }
  }

  /** @throws BroomwagonError as the transition `snapshots/restore` */
  async restore(pool: PoolName, request: RestoreJobRequest): Promise<RestoreJobReply> {
    const endsAtMs = Date.now() + BUSY_MS;
    // All pages belong to the trainer epoch of the first page.
    for (let { stamp, trainerEpoch } = request; ;) {
      const { retired, ...reply } = await this.snapshots.restore(pool, { ...request, trainerEpoch, stamp });
      ({ stamp, trainerEpoch } = reply);
      await this.afterPage(pool, 'restore', retired);
      if (reply.state === 'restored' || Date.now() >= endsAtMs) return reply;
    }
  }

  /**
   * Deletes snapshots that are no longer kept, and payloads that only these snapshots refer to.
   * @throws BroomwagonError UNAVAILABLE
   */
  @PagedWork({ order: 90, isDue: ({ oldSnapshots }) => oldSnapshots > 0 })
  async unlinkOld(pool: PoolName): Promise<void> {
    for await (const _ of this.snapshots.whileMore('unlink', pool)) {
      this.metrics.sweepPages.inc({ kind: 'unlink' });
      await failpoint('coordinator.unlink.between-pages');
    }
  }

  private async afterPage(pool: PoolName, kind: 'snapshot' | 'restore', isRetired: boolean): Promise<void> {
    this.metrics.sweepPages.inc({ kind });
    if (isRetired) {
      // The deletion runs in the background; after an error the periodic sweep continues.
      this.unlinkOld(pool).catch((error: unknown) => {
        this.logger.warn({ err: error, pool }, 'Deleting an old job snapshot failed');
      });
    }
    await failpoint(`coordinator.${kind}.between-pages`);
  }
}
