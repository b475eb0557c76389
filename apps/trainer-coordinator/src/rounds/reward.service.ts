import { Injectable } from '@nestjs/common';
import {
  type CloseRoundRequest,
  invalidField,
  isBroomwagonError,
  type PoolName,
  type RewardGroupsReply,
  type RewardGroupsRequest,
} from '@broomwagon/contracts';
import { areEqual } from '@broomwagon/policies';
import { RoundStore } from '@broomwagon/state';
import { RoundSweeps } from './round-sweeps';

/** Takes the rewards of accepted groups, from `round.reward` or `round.close`. */
@Injectable()
export class RewardService {
  constructor(
    private readonly rounds: RoundStore,
    private readonly sweeps: RoundSweeps,
  ) {}

  /**
   * @param field the request field that errors name
   * @throws BroomwagonError VALIDATION_FAILED, GROUP_NOT_FOUND, FENCED, GENERATION_CHANGED, JOB_NOT_FOUND,
   *   ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_CANCELLED; nothing was changed
   */
  async reward(
    pool: PoolName,
    { groups, remainingGroups = 0, ...trainer }: RewardGroupsRequest,
    field: 'groups' | 'rewards' = 'groups',
  ): Promise<RewardGroupsReply> {
    const seen = new Set<string>();
    for (const [position, { groupId }] of groups.entries()) {
      if (seen.has(groupId)) throw invalidField(`${field}.${position}.groupId`, `${groupId} comes twice`);
      seen.add(groupId);
    }
    const { completed, ...reply } = await this.rounds.reward(pool, {
      ...trainer,
      field,
      remainingGroups,
      groups: groups.map(({ groupId, rewards }) => ({ groupId, rewards: rewards.length, isEqual: areEqual(rewards) })),
    });
    if (completed) this.sweeps.cutSoon(pool, trainer);
    return reply;
  }

  /** Takes the rewards of `round.close`. If the round is closed, the call is a repeat and its rewards are ignored. */
  async rewardBeforeClose(
    pool: PoolName,
    { job, roundId, trainerEpoch, stamp }: Omit<CloseRoundRequest, 'rewards'>,
    given: Pick<RewardGroupsRequest, 'groups' | 'remainingGroups'>,
  ): Promise<void> {
    try {
      await this.reward(pool, { job, roundId, trainerEpoch, stamp, ...given }, 'rewards');
    } catch (error) {
      if (!isBroomwagonError(error, 'ROUND_CLOSED')) throw error;
    }
  }
}
