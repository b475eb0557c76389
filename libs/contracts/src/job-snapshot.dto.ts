import { type JobPosition, JobRequest, StampedJobRequest, type StampedReply, TrainerRequest } from './common.dto';
import { IsOptional } from 'class-validator';
import { IsEpoch, IsId, IsWithin } from './rules';
import type { Epoch, Integer, JobId } from './scalars';

/** Largest `keep`: each group that is freed is searched for in all snapshots of its job. */
const MAX_SNAPSHOTS = 16;

/**
 * `job.snapshot`: saves a snapshot of a job between two rounds: its long-tail queue with all tokens (by reference),
 * step and counters. The last snapshots are kept, two by default.
 */
export class SnapshotJobRequest extends TrainerRequest {
  /** Name of the snapshot, for example the step; the same tag for another state is refused. */
  @IsId() tag!: string;
  /**
   * Number of the newest snapshots of the job that are kept, with this one. All their groups keep their payloads.
   * @default 2
   */
  @IsOptional() @IsWithin(1, MAX_SNAPSHOTS) keep?: Integer;
}
export interface SnapshotJobReply extends StampedReply, Omit<JobSnapshotStatus, 'savedAtMs'> {
  /** `saving`: not finished; send the same body again. */
  state: 'saving' | 'complete';
}

/**
 * `job.restore`: returns the job to a snapshot and fences every earlier trainer. Groups submitted later are unknown
 * again: the trainer submits them again.
 */
export class RestoreJobRequest extends StampedJobRequest {
  /** Absent: the previous trainer is fenced, as by `round.takeover`. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Tag of a complete snapshot. */
  @IsId() tag!: string;
}
export interface RestoreJobReply extends StampedReply, JobPosition {
  /** Tag of the snapshot, from the request. */
  tag: string;
  /** `restoring`: not finished; send the same body again. */
  state: 'restoring' | 'restored';
  /** Groups of the long-tail queue. */
  groups: Integer;
}

/** `job.snapshots`: lists the snapshots that can be restored, oldest first. */
export class ListSnapshotsRequest extends JobRequest {}
/** A snapshot that can be restored. */
export interface JobSnapshotStatus {
  /** Name of the snapshot. */
  tag: string;
  /** Steps trained. */
  step: Integer;
  /** Groups of the long-tail queue in the snapshot. */
  groups: Integer;
  /** Requests of these groups. */
  requests: Integer;
  /** Time of completion, milliseconds since 1970. */
  savedAtMs: Integer;
}
export interface ListSnapshotsReply {
  job: JobId;
  /** Complete snapshots, oldest first. */
  snapshots: JobSnapshotStatus[];
  /** Tag of an incomplete snapshot. */
  saving?: string;
  /** Tag of an unfinished restore: repeat `job.restore`. */
  restoring?: string;
}
