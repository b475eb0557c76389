import { JobRequest } from './common.dto';
import { IsBoolean, IsOptional } from 'class-validator';
import type { Integer, JobId, PoolName } from './scalars';

/**
 * `job.delete`: deletes the job with its long-tail queue, snapshots, ledger, quota and payloads. While it answers
 * `deleting`, send the same body again. An unknown job is `deleted`.
 */
export class DeleteJobRequest extends JobRequest {
  /** Delete the job also while a round is open: the round is cancelled, and the trainer is fenced. */
  @IsOptional() @IsBoolean() force?: boolean;
}
export interface DeleteJobReply {
  job: JobId;
  /** `deleting`: not finished; send the same body again. */
  state: 'deleting' | 'deleted';
}

/** `pool.delete`: deletes the pool of the subject with all its jobs, servers, settings and prompt memory. */
export class DeletePoolRequest {
  /**
   * Delete the pool also while it has servers, workers or open rounds; all users are fenced and must register again.
   */
  @IsOptional() @IsBoolean() force?: boolean;
}
export interface DeletePoolReply {
  pool: PoolName;
  /** Jobs that were deleted with it. */
  jobs: Integer;
}
