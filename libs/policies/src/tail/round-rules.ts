import type { RoundKind, RoundRules } from '@broomwagon/contracts';
import type { FixedPolicy } from './tail-rule';
import { TAIL_RULES } from './tail-rules';

/** Default of `maxFailures` of a policy. */
export const DEFAULT_MAX_FAILURES = 3;

/** Default of `maxReturns` of a policy. */
export const DEFAULT_MAX_RETURNS = 1_000;

export const NO_VERSION_SPAN = -1;

export function roundRules(policy: FixedPolicy, kind: RoundKind): RoundRules {
  const rule = TAIL_RULES[policy.name];
  return {
    onCut: policy.onCut ?? rule.onCut,
    reservesTaken: rule.reservesTaken(policy),
    sampleOverProvision: kind === 'long' || policy.name === 'wait' ? 1 : (policy.sampleOverProvision ?? 1),
    concurrency: policy.concurrency ?? 0,
    maxFailures: policy.maxFailures ?? DEFAULT_MAX_FAILURES,
    maxReturns: policy.maxReturns ?? DEFAULT_MAX_RETURNS,
    acceptsFewer: policy.shortfall === 'accept-fewer',
    maxCuts: policy.maxCuts ?? 0,
    maxAgeSteps: policy.maxAgeSteps ?? 0,
    maxVersionSpan: policy.maxVersionSpan ?? NO_VERSION_SPAN,
    dispatchOrder: policy.dispatchOrder ?? 'arrival',
    equalRewards: policy.equalRewards ?? 'keep',
  };
}

/** Whether a bound of the policy can pin groups. Then a plan needs the whole queue. */
export function hasPins(rules: Pick<RoundRules, 'maxCuts' | 'maxAgeSteps' | 'maxVersionSpan'>): boolean {
  return rules.maxCuts > 0 || rules.maxAgeSteps > 0 || rules.maxVersionSpan !== NO_VERSION_SPAN;
}

/** Whether all rewards of a group are equal. A group of one sample (PPO) never counts as equal, so it is trained. */
export function areEqual(rewards: readonly number[]): boolean {
  return rewards.length > 1 && rewards.every((reward) => reward === rewards[0]);
}
