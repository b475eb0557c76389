import { Type } from 'class-transformer';
import { ArrayMaxSize, IsArray, IsBoolean, IsInt, IsOptional, Max, Min, ValidateNested } from 'class-validator';
import { IsEpoch } from './epochs';
import { IsId, type Epoch, type GroupId, type JobId, type RoundId } from './ids';
import { IsCounter, type Integer } from './integers';
import { LIMITS } from './limits';
import { IsStamp, type Stamp } from './stamp';

/** A group that a trainer has trained. */
export class TrainedGroup {
  @IsId() groupId!: GroupId;
  /** Samples it was trained with. */
  @IsInt() @Min(1) @Max(LIMITS.samplesPerGroup) samples!: Integer;
}

/**
 * `job.reconcile`: after GENERATION_CHANGED and a takeover, what the trainer has and Redis may have lost. Steps that
 * Redis does not count as trained are named one by one, the oldest first, each in pages; `groupIds` asks which groups
 * Redis knows. Everything may be said again.
 */
export class ReconcileJobRequest {
  @IsId() job!: JobId;
  /** Of the takeover; absent only when that answered JOB_NOT_FOUND: then the job is made anew. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /**
   * Of that `round.takeover`; needed without `trainerEpoch`: a repeat of the call that made the job gets the same
   * epoch.
   */
  @IsOptional() @IsId() takeoverId?: string;
  /** Of the last reply. */
  @IsOptional() @IsStamp() stamp?: Stamp;
  /** A step the trainer has trained; with `groups`. */
  @IsOptional() @IsCounter(1) step?: Integer;
  /** Groups of that step. Each counts as trained once, wherever Redis has it, also when it does not know it. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(LIMITS.groupsPerReconcile)
  @ValidateNested({ each: true })
  @Type(() => TrainedGroup)
  groups?: TrainedGroup[];
  /** All groups of the step have been named: it counts as trained. */
  @IsOptional() @IsBoolean() isLast?: boolean;
  /** Groups the trainer has submitted and not trained; those that Redis does not know are answered. */
  @IsOptional() @IsArray() @ArrayMaxSize(LIMITS.groupsPerReconcile) @IsId({ each: true }) groupIds?: GroupId[];
}
export interface ReconcileJobReply {
  trainerEpoch: Epoch;
  /** Steps that Redis counts as trained now. */
  stepsTrained: Integer;
  /** Groups ever submitted, as Redis counts them. */
  submittedGroups: Integer;
  /** The round that is not closed, if any; what was read of it is to be read again. */
  openRoundId?: RoundId;
  /** Groups of `groups` that were not counted as trained before. */
  countedGroups: Integer;
  /** Of `groupIds`: unknown to Redis, to be submitted again. */
  unknown: GroupId[];
  stamp: Stamp;
}
