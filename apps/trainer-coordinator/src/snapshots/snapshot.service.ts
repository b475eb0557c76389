import { Injectable } from '@nestjs/common';
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
import { SnapshotSweepService } from './snapshot-sweep.service';

/** A call does pages for so long, then answers how far it is; milliseconds. */
const BUSY_MS = 2_000;

/** Saves and restores page by page; a repeated call continues where a failed replica stopped. */
@Injectable()
export class SnapshotService {
  constructor(
    private readonly snapshots: SnapshotStore,
    private readonly sweeper: SnapshotSweepService,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  /** @throws BroomwagonError as the script `snapshots/save` says */
  async save(pool: PoolName, { job, trainerEpoch, stamp, tag }: SnapshotJobRequest): Promise<SnapshotJobReply> {
    const endsAtMs = Date.now() + BUSY_MS;
    for (let seen = stamp; ;) {
      const { retired, ...reply } = await this.snapshots.save(pool, { job, trainerEpoch, stamp: seen, tag });
      seen = reply.stamp;
      this.metrics.sweepPages.inc({ kind: 'snapshot' });
      if (retired) this.sweeper.soon(pool);
      await failpoint('coordinator.snapshot.between-pages');
      if (reply.state === 'complete' || Date.now() >= endsAtMs) return reply;
    }
  }

  /** @throws BroomwagonError as the script `snapshots/restore` says */
  async restore(pool: PoolName, { job, trainerEpoch, stamp, tag }: RestoreJobRequest): Promise<RestoreJobReply> {
    const endsAtMs = Date.now() + BUSY_MS;
    // Of the first page on: one call is one trainer.
    let epoch = trainerEpoch;
    for (let seen = stamp; ;) {
      const page = await this.snapshots.restore(pool, { job, trainerEpoch: epoch, stamp: seen, tag });
      epoch = page.trainerEpoch;
      seen = page.stamp;
      const { retired, ...reply } = page;
      this.metrics.sweepPages.inc({ kind: 'restore' });
      if (retired) this.sweeper.soon(pool);
      await failpoint('coordinator.restore.between-pages');
      if (reply.state === 'restored' || Date.now() >= endsAtMs) return reply;
    }
  }
}
