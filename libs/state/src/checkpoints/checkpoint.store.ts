import { Injectable } from '@nestjs/common';
import { type Epoch, type JobId, type ListCheckpointsReply, newEpoch, type PoolName } from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';
import type {
  RestoreCheckpointArgs,
  RestoreCheckpointPage,
  SaveCheckpointArgs,
  SaveCheckpointPage,
  UnlinkCheckpointsPage,
} from './checkpoint.types';

const save = transition<SaveCheckpointArgs, SaveCheckpointPage>('checkpoints/save');
const restore = transition<RestoreCheckpointArgs & { newEpoch: Epoch }, RestoreCheckpointPage>('checkpoints/restore');
const unlink = transition<object, UnlinkCheckpointsPage>('checkpoints/unlink');
const list = transition<{ job: JobId }, ListCheckpointsReply>('checkpoints/list');

/**
 * What a job has between two rounds, saved and put back by tag: one script a page, for any replica to go on with. Every
 * method throws BroomwagonError with the codes its script names, or UNAVAILABLE.
 */
@Injectable()
export class CheckpointStore {
  constructor(private readonly scripts: FunctionRunner) {}

  /**
   * Saves one page; call again while it is `saving`.
   * @throws GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_CONFLICT, ROUND_SETTLING, RESTORE_UNFINISHED,
   *   CHECKPOINT_EXISTS
   */
  save(pool: PoolName, args: SaveCheckpointArgs): Promise<SaveCheckpointPage> {
    return this.scripts.run(save, pool, args);
  }

  /**
   * Does one page of a restore; call again while it is `restoring`.
   * @throws GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, CHECKPOINT_NOT_FOUND, ROUND_CONFLICT, ROUND_SETTLING
   */
  restore(pool: PoolName, args: RestoreCheckpointArgs): Promise<RestoreCheckpointPage> {
    return this.scripts.run(restore, pool, { ...args, newEpoch: newEpoch() });
  }

  /** Deletes one page of checkpoints that are no longer kept. */
  unlink(pool: PoolName): Promise<UnlinkCheckpointsPage> {
    return this.scripts.run(unlink, pool, {});
  }

  /** @throws JOB_NOT_FOUND */
  list(pool: PoolName, job: JobId): Promise<ListCheckpointsReply> {
    return this.scripts.run(list, pool, { job });
  }
}
