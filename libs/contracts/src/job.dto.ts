import { type JobPosition, type PageReply, ScanRequest, StampedJobRequest, type StampedReply } from './common.dto';
import { IsBoolean, IsOptional } from 'class-validator';
import type { LongtailStats } from './longtail.dto';
import type { Integer, JobId, RoundId } from './scalars';

/** `job.status`: state and request counts of a job. */
export class JobStatusRequest extends StampedJobRequest {}
/** Requests by state. `submitted` is the sum of all other fields. */
export interface RequestCounts {
  /** All submitted samples. */
  submitted: Integer;
  /** Requests without a worker. */
  pending: Integer;
  /** Claimed requests that do not run yet. */
  claimed: Integer;
  /** Requests that run on an engine. */
  running: Integer;
  /** Requests that are being stopped. */
  cutting: Integer;
  /** Unfinished requests in the long-tail queue. */
  unfinished: Integer;
  /** Finished, untrained requests. */
  finished: Integer;
  /** Trained requests. */
  trained: Integer;
  /** Requests that failed for good. */
  failed: Integer;
  /** Dropped requests. */
  dropped: Integer;
}
/** State of a job. */
export interface JobStatus extends StampedReply, JobPosition {
  job: JobId;
  /** Groups trained. */
  trainedGroups: Integer;
  /** Accepted groups that were not trained, because their rewards were equal. Their requests count as `dropped`. */
  excludedGroups: Integer;
  /** Groups with a request that failed for good. */
  failedGroups: Integer;
  /** Groups that lost samples to an abort and were dropped; never trained. */
  droppedGroups: Integer;
  /** Long-tail queue of the job. */
  longtail: LongtailStats;
  /** Requests of the job, by state. */
  requests: RequestCounts;
  /** The round that is not closed, if any. */
  openRoundId?: RoundId;
}

/** `job.list`: one page of the jobs of the pool. */
export class ListJobsRequest extends ScanRequest {
  /** Only jobs with a round that is not closed. */
  @IsOptional() @IsBoolean() openOnly?: boolean;
}
export interface ListJobsReply extends PageReply {
  /** The jobs, sorted within the page. */
  jobs: JobId[];
}
