import { type JobPosition, JobRequest, StampedJobRequest, type StampedReply, TrainerRequest } from './common.dto';
import { IsOptional } from 'class-validator';
import { LIMITS } from './limits';
import { IsEpoch, IsId, IsWithin } from './rules';
import type { Epoch, Integer, JobId } from './scalars';

/** Largest `keep`. Before a group is freed, all snapshots of the job are searched for it. */
const MAX_SNAPSHOTS = 16;

/**
 * `job.snapshot`: saves a snapshot of a job between two rounds: the long-tail queue with references of all tokens, the
 * step and the counters.
 */
export class SnapshotJobRequest extends TrainerRequest {
  /** Name of the snapshot, for example the step. A tag of a snapshot with another state is refused. */
  @IsId() tag!: string;
  /**
   * Number of snapshots that the job keeps, newest first, with this one. Groups in these snapshots keep their payloads.
   * @default 2
   */
  @IsOptional() @IsWithin(1, MAX_SNAPSHOTS) keep?: Integer;
}
export interface SnapshotJobReply extends StampedReply, Omit<JobSnapshotStatus, 'savedAtMs'> {
  /** `saving`: not finished; send the same body again. */
  state: 'saving' | 'complete';
}

/**
 * `job.restore`: returns the job to a snapshot and fences every earlier trainer. The trainer submits later groups
 * again, because they are unknown after the restore.
 */
export class RestoreJobRequest extends StampedJobRequest {
  /** Epoch of the trainer; absent: the previous trainer is fenced, as by `round.takeover`. */
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
export class ListSnapshotsRequest extends JobRequest {
  /** Maximum snapshots, the latest; absent: all of them. */
  @IsOptional() @IsWithin(1, LIMITS.page) limit?: Integer;
}
/** A snapshot that can be restored. */
export interface JobSnapshotStatus {
  /** Name of the snapshot. */
  tag: string;
  /** Steps trained. */
  step: Integer;
  /** Groups of the long-tail queue in the snapshot. */
  groups: Integer;
  /** Requests of the groups of the snapshot. */
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
