import { RoundRequest, type StampedReply } from './common.dto';
import { IsNumber, IsOptional } from 'class-validator';
import { LIMITS } from './limits';
import { IsCounter, IsId, IsList, IsListOf } from './rules';
import type { GroupId, Integer } from './scalars';

/** Rewards of one accepted group. */
export class GroupRewards {
  @IsId() groupId!: GroupId;
  /** One finite number for each sample in the results of the group, in any order. */
  @IsList(LIMITS.samplesPerGroup, 1)
  @IsNumber({ allowNaN: false, allowInfinity: false }, { each: true })
  rewards!: number[];
}

/**
 * `round.reward`: reports the rewards of accepted groups. Only the first report of a group counts. `equalRewards` of
 * the policy decides what happens to a group with equal rewards.
 */
export class RewardGroupsRequest extends RoundRequest {
  /** The groups, each once. */
  @IsListOf(() => GroupRewards, LIMITS.groupsPerReward, 1) groups!: GroupRewards[];
  /**
   * Groups that the trainer can still submit, for `equalRewards` `replace`: no group is replaced when no other group is
   * left.
   * @default 0
   */
  @IsOptional() @IsCounter(0) remainingGroups?: Integer;
}
/**
 * Consequence of the rewards for a group. `kept`: the group is trained. `excluded`: the group is not trained.
 * `replaced`: the group is not trained, and the round accepts another group.
 */
export type RewardOutcome = 'kept' | 'excluded' | 'replaced';
export interface RewardGroupsReply extends StampedReply {
  /** One outcome for each group of the request, in order: the outcome of the group's first report. */
  outcomes: {
    groupId: GroupId;
    outcome: RewardOutcome;
  }[];
}
