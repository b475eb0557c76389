import { IsBoolean, IsOptional } from 'class-validator';
import { IsId, type JobId, type PoolName } from './ids';
import type { Integer } from './integers';

/**
 * `job.delete`: the job goes with everything it has: its long-tail queue, checkpoints, ledger, quota and payloads.
 * While it answers `deleting`, send the same again. A job that is not there is `deleted`.
 */
export class DeleteJobRequest {
  @IsId() job!: JobId;
  /** Also while its round is open: the round is cancelled, its trainer is fenced. */
  @IsOptional() @IsBoolean() force?: boolean;
}
export interface DeleteJobReply {
  job: JobId;
  /** `deleting`: more than one call could do; send the same body again. */
  state: 'deleting' | 'deleted';
}

/** `pool.delete`: the pool of the subject goes with all its jobs, servers, settings and prompt memory. */
export class DeletePoolRequest {
  /** Also while it has servers, workers or open rounds; who still uses it is fenced and must register again. */
  @IsOptional() @IsBoolean() force?: boolean;
}
export interface DeletePoolReply {
  pool: PoolName;
  /** Jobs that were deleted with it. */
  jobs: Integer;
}
