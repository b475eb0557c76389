import { JobRequest } from './common.dto';
import { Type } from 'class-transformer';
import { IsOptional, ValidateNested } from 'class-validator';
import { IsCounter, IsWithin } from './rules';
import type { Integer, JobId } from './scalars';

/** Quota of a job in a pool. */
export class JobQuota {
  /**
   * Weight of the job: claims are shared among the jobs with pending requests in proportion to their weights.
   * @default 1
   */
  @IsOptional() @IsWithin(1, 1_000) weight?: Integer;
  /** Maximum requests of the job that workers have at the same time; 0 stops its claims; absent = no limit. */
  @IsOptional() @IsWithin(0, 100_000_000) maxInFlight?: Integer;
}

/**
 * `job.configure`: replaces the quota of a job, also before the first round of the job. Without `quota`, the present
 * quota is returned. A repeat changes nothing. Errors: VERSION_MISMATCH.
 */
export class ConfigureJobRequest extends JobRequest {
  /** The new quota, which replaces the whole old quota; absent: no change. */
  @IsOptional() @ValidateNested() @Type(() => JobQuota) quota?: JobQuota;
  /** Required version of the quota. Otherwise VERSION_MISMATCH, unless the quota is already as requested. */
  @IsOptional() @IsCounter(0) ifVersion?: Integer;
}
export interface ConfigureJobReply {
  job: JobId;
  /** Version of the quota, increased by 1 with each change; 0: the defaults. */
  version: Integer;
  /** Quota in force. */
  quota: {
    /** Weight of the job: claims are shared among the jobs with pending requests in proportion to their weights. */
    weight: Integer;
    /** Maximum requests of the job that workers have at the same time; absent = no limit. */
    maxInFlight?: Integer;
  };
  /** Requests that workers have now. */
  inFlight: Integer;
}
