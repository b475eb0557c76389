import { IsOptional } from 'class-validator';
import { IsEpoch } from './epochs';
import { IsId, type JobId, type Epoch } from './ids';
import { IsStamp, type Stamp } from './stamp';
import type { Integer } from './integers';

/**
 * `job.checkpoint`: saves what a job has between two rounds: its long-tail queue with all tokens (by reference), step,
 * counters and counts. The last two are kept.
 */
export class CheckpointJobRequest {
  @IsId() job!: JobId;
  @IsEpoch() trainerEpoch!: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
  /** Names it, for example by the step; the same tag again for another state is refused. */
  @IsId() tag!: string;
}
export interface CheckpointJobReply {
  /** That of the request. */
  tag: string;
  /** Steps trained. */
  step: Integer;
  /** `saving`: more than one call could do; send the same body again. */
  state: 'saving' | 'complete';
  /** Groups of the long-tail queue, so far. */
  groups: Integer;
  /** Requests of these groups. */
  requests: Integer;
  stamp: Stamp;
}

/**
 * `job.restore`: the job goes back to a checkpoint, and every trainer before is fenced. What was submitted since is
 * forgotten: the trainer submits it again.
 */
export class RestoreJobRequest {
  @IsId() job!: JobId;
  /** Absent: whoever the trainer was is fenced, as by `round.takeover`. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
  /** Tag of a complete checkpoint. */
  @IsId() tag!: string;
}
export interface RestoreJobReply {
  /** That of the request. */
  tag: string;
  /** `restoring`: more than one call could do; send the same body again. */
  state: 'restoring' | 'restored';
  /** Of the caller, from now on. */
  trainerEpoch: Epoch;
  /** Steps trained until the checkpoint. */
  stepsTrained: Integer;
  /** Groups submitted until the checkpoint: the trainer's position in its data. */
  submittedGroups: Integer;
  /** Groups of the long-tail queue. */
  groups: Integer;
  stamp: Stamp;
}

/** `job.checkpoints`: those that may be restored, oldest first. */
export class ListCheckpointsRequest {
  @IsId() job!: JobId;
}
/** One checkpoint that may be restored. */
export interface CheckpointStatus {
  /** Name of the checkpoint. */
  tag: string;
  /** Steps trained. */
  step: Integer;
  /** Groups of the long-tail queue that it holds. */
  groups: Integer;
  /** Requests of these groups. */
  requests: Integer;
  /** When it was complete, milliseconds since 1970. */
  savedAtMs: Integer;
}
export interface ListCheckpointsReply {
  job: JobId;
  /** Complete checkpoints, oldest first. */
  checkpoints: CheckpointStatus[];
  /** Tag of one that is not complete. */
  saving?: string;
  /** Tag of a restore that is not finished: `job.restore` is to be repeated. */
  restoring?: string;
}
