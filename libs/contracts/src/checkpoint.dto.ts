import { IsOptional } from 'class-validator';
import { IsEpoch } from './epochs';
import { IsId, type JobId, type Epoch } from './ids';
import { IsStamp } from './stamp';

/**
 * `job.checkpoint`: saves what a job has between two rounds: its long-tail queue with all tokens (by reference), step,
 * counters and counts. The last two are kept.
 */
export class CheckpointJobRequest {
  @IsId() job!: JobId;
  @IsEpoch() trainerEpoch!: Epoch;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: string;
  /** Names it, for example by the step; the same tag again for another state is refused. */
  @IsId() tag!: string;
}
export interface CheckpointJobReply {
  tag: string;
  /** Steps trained. */
  step: number;
  /** `saving`: more than one call could do; send the same body again. */
  state: 'saving' | 'complete';
  /** Groups of the long-tail queue, so far. */
  groups: number;
  requests: number;
  stamp: string;
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
  @IsOptional() @IsStamp() stamp?: string;
  @IsId() tag!: string;
}
export interface RestoreJobReply {
  tag: string;
  /** `restoring`: more than one call could do; send the same body again. */
  state: 'restoring' | 'restored';
  /** Of the caller, from now on. */
  trainerEpoch: Epoch;
  stepsTrained: number;
  /** Groups submitted until the checkpoint: the trainer's position in its data. */
  submittedGroups: number;
  /** Groups of the long-tail queue. */
  groups: number;
  stamp: string;
}

/** `job.checkpoints`: those that may be restored, oldest first. */
export class ListCheckpointsRequest {
  @IsId() job!: JobId;
}
export interface ListCheckpointsReply {
  job: JobId;
  checkpoints: { tag: string; step: number; groups: number; requests: number; savedAtMs: number }[];
  /** Tag of one that is not complete. */
  saving?: string;
  /** Tag of a restore that is not finished: `job.restore` is to be repeated. */
  restoring?: string;
}
