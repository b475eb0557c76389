import { type JobPosition, StampedJobRequest, type StampedReply } from './common.dto';
import { IsBoolean, IsOptional } from 'class-validator';
import { LIMITS } from './limits';
import { IsCounter, IsEpoch, IsId, IsList, IsListOf, IsWithin } from './rules';
import type { Epoch, GroupId, Integer, RoundId } from './scalars';

/** A trained group. */
export class TrainedGroup {
  @IsId() groupId!: GroupId;
  /** Number of its trained samples. */
  @IsWithin(1, LIMITS.samplesPerGroup) samples!: Integer;
}

/**
 * `job.reconcile`: restores state that Redis may have lost, after GENERATION_CHANGED and a takeover. The trainer names
 * the steps that Redis does not count as trained, oldest first, each in pages. With `groupIds`, the trainer asks which
 * groups Redis knows. All calls may be repeated.
 */
export class ReconcileJobRequest extends StampedJobRequest {
  /** Epoch of the takeover; absent after a takeover with the error JOB_NOT_FOUND: then the job is created again. */
  @IsOptional() @IsEpoch() trainerEpoch?: Epoch;
  /**
   * Id of the failed `round.takeover`; required without `trainerEpoch`, so that a repeated call gets the same epoch.
   */
  @IsOptional() @IsId() takeoverId?: string;
  /** A trained step; with `groups`. */
  @IsOptional() @IsCounter(1) step?: Integer;
  /** Groups of the step. Each group counts as trained once, in any state, and also if Redis does not know the group. */
  @IsOptional() @IsListOf(() => TrainedGroup, LIMITS.groupsPerReconcile) groups?: TrainedGroup[];
  /** The last page of the step: the step counts as trained. */
  @IsOptional() @IsBoolean() isLast?: boolean;
  /** Groups that were submitted and not trained. `unknown` of the reply has groups that Redis does not know. */
  @IsOptional() @IsList(LIMITS.groupsPerReconcile) @IsId({ each: true }) groupIds?: GroupId[];
}
export interface ReconcileJobReply extends StampedReply, JobPosition {
  /** The round that is not closed, if any; read its results from the beginning. */
  openRoundId?: RoundId;
  /** Groups of `groups` that were not counted as trained before. */
  countedGroups: Integer;
  /** Groups of `groupIds` that Redis does not know: submit them again. */
  unknown: GroupId[];
}
