import { RoundRequest, type StampedReply } from './common.dto';
import { IsNumber, IsOptional } from 'class-validator';
import { LIMITS } from './limits';
import { IsCounter, IsId, IsList, IsListOf } from './rules';
import type { GroupId, Integer } from './scalars';

/** Rewards of one accepted group. */
export class GroupRewards {
  @IsId() groupId!: GroupId;
  /** One for each sample of its results, in any order; finite numbers. */
  @IsList(LIMITS.samplesPerGroup, 1)
  @IsNumber({ allowNaN: false, allowInfinity: false }, { each: true })
  rewards!: number[];
}

/**
 * `round.reward`: reports the rewards of accepted groups, as soon as they are known. The `equalRewards` of the policy
 * decides over a group whose rewards are all equal. The first report of a group counts.
 */
export class RewardGroupsRequest extends RoundRequest {
  /** The groups, each once. */
  @IsListOf(() => GroupRewards, LIMITS.groupsPerReward, 1) groups!: GroupRewards[];
  /**
   * Groups that the trainer can still submit, for `equalRewards` `replace`: without others, a group is not replaced.
   * @default 0
   */
  @IsOptional() @IsCounter(0) remainingGroups?: Integer;
}
/**
 * Consequence of its rewards for a group. `kept`: it is trained. `excluded`: it is not trained. `replaced`: it is not
 * trained, and the round accepts another one.
 */
export type RewardOutcome = 'kept' | 'excluded' | 'replaced';
export interface RewardGroupsReply extends StampedReply {
  /** One outcome for each group of the request, in order: the outcome of the group's first report. */
  outcomes: {
    groupId: GroupId;
    outcome: RewardOutcome;
  }[];
}
