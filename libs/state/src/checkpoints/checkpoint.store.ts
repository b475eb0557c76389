import { Injectable } from '@nestjs/common';
import {
  type CheckpointJobRequest,
  type Epoch,
  type JobId,
  type ListCheckpointsReply,
  newEpoch,
  type PoolName,
  type RestoreJobRequest,
} from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';
import type { RestoreCheckpointPage, SaveCheckpointPage } from './checkpoint.types';

const save = transition<CheckpointJobRequest, SaveCheckpointPage>('checkpoints/save');
const restore = transition<RestoreJobRequest & { newEpoch: Epoch }, RestoreCheckpointPage>('checkpoints/restore');
const unlink = transition<object, { more: boolean }>('checkpoints/unlink');
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
  save(pool: PoolName, args: CheckpointJobRequest): Promise<SaveCheckpointPage> {
    return this.scripts.run(save, pool, args);
  }

  /**
   * Does one page of a restore; call again while it is `restoring`.
   * @throws GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, CHECKPOINT_NOT_FOUND, ROUND_CONFLICT, ROUND_SETTLING
   */
  restore(pool: PoolName, args: RestoreJobRequest): Promise<RestoreCheckpointPage> {
    return this.scripts.run(restore, pool, { ...args, newEpoch: newEpoch() });
  }

  /** Deletes one page of checkpoints that are no longer kept. */
  unlink(pool: PoolName): Promise<{ more: boolean }> {
    return this.scripts.run(unlink, pool, {});
  }

  /** @throws JOB_NOT_FOUND */
  list(pool: PoolName, job: JobId): Promise<ListCheckpointsReply> {
    return this.scripts.run(list, pool, { job });
  }
}
