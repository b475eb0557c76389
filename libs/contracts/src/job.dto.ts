import { type JobPosition, type PageReply, ScanRequest, StampedJobRequest, type StampedReply } from './common.dto';
import { IsBoolean, IsOptional } from 'class-validator';
import type { LongtailStats } from './longtail.dto';
import type { Integer, JobId, RoundId } from './scalars';

/** `job.status`: state and request counts of a job. */
export class JobStatusRequest extends StampedJobRequest {}
/**
 * Requests by state; always submitted = pending + claimed + running + cutting + unfinished + finished + trained +
 * failed + dropped.
 */
export interface RequestCounts {
  /** All submitted samples. */
  submitted: Integer;
  /** Waiting for a worker. */
  pending: Integer;
  /** With a worker, not running yet. */
  claimed: Integer;
  /** Running on an engine. */
  running: Integer;
  /** To be stopped, not confirmed yet. */
  cutting: Integer;
  /** In the long-tail queue, not finished. */
  unfinished: Integer;
  /** Finished, not trained yet. */
  finished: Integer;
  /** Trained. */
  trained: Integer;
  /** Failed for good. */
  failed: Integer;
  /** Dropped, never trained. */
  dropped: Integer;
}
/** State of a job. */
export interface JobStatus extends StampedReply, JobPosition {
  job: JobId;
  /** Groups trained. */
  trainedGroups: Integer;
  /** Accepted groups that were not trained, as their rewards were equal; their requests are `dropped`. */
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
