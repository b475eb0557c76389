import type { RewardOutcome } from '@broomwagon/contracts';
import type { GroupTransitions } from './group-transitions';
import { takesResults } from './where-groups-go';
import { placeDomain } from './places';
import { countWaste } from './request-moves';
import type { ModelGroup, ModelRound } from './round-model.types';

/** Keeps, excludes or replaces an accepted group by its rewards, as libs/state/src/rounds/rewards.lua does. */
export function rewardGroup(
  state: GroupTransitions,
  group: ModelGroup,
  { isEqual, remainingGroups, nowMs }: { isEqual: boolean; remainingGroups: number; nowMs: number },
): RewardOutcome {
  const { round } = group;
  const known = round.outcomes.get(group);
  if (known !== undefined) return known;
  let outcome: RewardOutcome = 'kept';
  if (isEqual && mayReplace(round, remainingGroups)) {
    outcome = 'replaced';
    round.replacedGroups += 1;
    round.neededGroups += 1;
    const domain = placeDomain(round, group);
    round.places?.set(domain, round.places.get(domain)! + 1);
    if (state.shortfall(round) > 0) round.newGroups = Math.max(round.newGroups, round.submittedGroups) + 1;
  } else if (isEqual && round.rules.equalRewards === 'exclude') {
    outcome = 'excluded';
  }
  if (outcome !== 'kept') countWaste(round, 'equal-rewards', group.tokens);
  if (round.rules.equalRewards !== 'keep') round.outcomes.set(group, outcome);
  state.review(round, nowMs);
  return outcome;
}

function mayReplace(round: ModelRound, remainingGroups: number): boolean {
  return (
    round.rules.equalRewards === 'replace' &&
    takesResults(round) &&
    round.replacedGroups < round.maxReplacedGroups &&
    round.live.size + remainingGroups > round.neededGroups - round.accepted.length
  );
}

/** Whether the group is accepted but not trained. */
export function isExcluded(group: ModelGroup): boolean {
  return (group.round.outcomes.get(group) ?? 'kept') !== 'kept';
}
