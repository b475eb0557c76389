import { Type } from 'class-transformer';
import { IsInt, IsOptional, Max, Min, ValidateNested } from 'class-validator';
import { IsId, type JobId } from './ids';
import type { Integer } from './integers';

/** How much of a pool a job may have. */
export class JobQuota {
  /**
   * Share of the claims while other jobs want them too, against their weights.
   * @default 1
   */
  @IsOptional() @IsInt() @Min(1) @Max(1_000) weight?: Integer;
  /** Requests that workers may have of it at once; 0 stops its claims; absent = no cap. */
  @IsOptional() @IsInt() @Min(0) @Max(100_000_000) maxInFlight?: Integer;
}

/** `job.configure`: sets the quota as a whole, also before the job's first round; without one, only answers it. */
export class ConfigureJobRequest {
  @IsId() job!: JobId;
  /** The whole quota anew; absent: it stays as it is. */
  @IsOptional() @ValidateNested() @Type(() => JobQuota) quota?: JobQuota;
}
export interface ConfigureJobReply {
  job: JobId;
  /** The quota in force. */
  quota: {
    /** Share of the claims while other jobs want them too, against their weights. */
    weight: Integer;
    /** Requests that workers may have of it at once; absent = no cap. */
    maxInFlight?: Integer;
  };
  /** Requests that workers have now. */
  inFlight: Integer;
}
