import { Injectable } from '@nestjs/common';
import {
  type SnapshotJobRequest,
  type Epoch,
  type JobId,
  type ListSnapshotsReply,
  newEpoch,
  type PoolName,
  type RestoreJobRequest,
} from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';
import type { RestoreSnapshotPage, SaveSnapshotPage } from './snapshot.types';

const save = transition<SnapshotJobRequest, SaveSnapshotPage>('snapshots/save');
const restore = transition<RestoreJobRequest & { newEpoch: Epoch }, RestoreSnapshotPage>('snapshots/restore');
const unlink = transition<object, { more: boolean }>('snapshots/unlink');
const list = transition<{ job: JobId }, ListSnapshotsReply>('snapshots/list');

/**
 * What a job has between two rounds, saved and put back by tag: one script a page, for any replica to go on with. Every
 * method throws BroomwagonError with the codes its script names, or UNAVAILABLE.
 */
@Injectable()
export class SnapshotStore {
  constructor(private readonly scripts: FunctionRunner) {}

  /**
   * Saves one page; call again while it is `saving`.
   * @throws GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_CONFLICT, ROUND_SETTLING, RESTORE_UNFINISHED,
   *   SNAPSHOT_EXISTS
   */
  save(pool: PoolName, args: SnapshotJobRequest): Promise<SaveSnapshotPage> {
    return this.scripts.run(save, pool, args);
  }

  /**
   * Does one page of a restore; call again while it is `restoring`.
   * @throws GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, SNAPSHOT_NOT_FOUND, ROUND_CONFLICT, ROUND_SETTLING
   */
  restore(pool: PoolName, args: RestoreJobRequest): Promise<RestoreSnapshotPage> {
    return this.scripts.run(restore, pool, { ...args, newEpoch: newEpoch() });
  }

  /** Deletes one page of snapshots that are no longer kept. */
  unlink(pool: PoolName): Promise<{ more: boolean }> {
    return this.scripts.run(unlink, pool, {});
  }

  /** @throws JOB_NOT_FOUND */
  list(pool: PoolName, job: JobId): Promise<ListSnapshotsReply> {
    return this.scripts.run(list, pool, { job });
  }
}
