import { JobRequest } from './common.dto';
import { IsBoolean, IsOptional } from 'class-validator';
import type { Integer, JobId, PoolName } from './scalars';

/**
 * `job.delete`: deletes the job with its long-tail queue, snapshots, ledger, quota and payloads, and ends its sessions.
 * While the reply has the state `deleting`, send the same body again. An unknown job is `deleted`.
 */
export class DeleteJobRequest extends JobRequest {
  /** Delete the job also while a round is open. The round is cancelled, and the trainer is fenced. */
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
   * Delete the pool although servers, workers or open rounds are left. All users are fenced and must register again.
   */
  @IsOptional() @IsBoolean() force?: boolean;
}
export interface DeletePoolReply {
  pool: PoolName;
  /** Number of jobs that were deleted with the pool. */
  jobs: Integer;
}
