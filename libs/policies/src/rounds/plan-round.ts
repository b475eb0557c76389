import {
  type RoundPlan,
  type TailPolicy,
  LIMITS,
  type RoundKind,
  type RoundRules,
  type TailChoice,
} from '@broomwagon/contracts';
import { type ResolvedPolicy, resolvePolicy } from '../auto';
import { type FormInput, formRound, type PlanProgress } from '../forming/form-round';
import { chooseTail, meanGroupTokens, roundRules, sharePlaces, type ControlInput, type TailControl } from '../tail';

/** Inputs of a plan that the trainer provides. */
export interface PlanInput extends Omit<FormInput, 'policy'> {
  policy: TailPolicy;
}

/**
 * Plans the next round with {@link formRound}. Under `auto`, the policy of the round is chosen first.
 * @param resolved policy of the round, if it is known already
 */
export function planRound(
  progress: PlanProgress,
  input: PlanInput,
  resolved: ResolvedPolicy = resolvePolicy(input.policy, progress),
): RoundPlan {
  const { policy, choice } = resolved;
  const plan = formRound(progress, { ...input, policy });
  return choice === undefined || plan.kind === 'done' ? plan : { ...plan, choice };
}

/** Terms of a round beside its plan, which follow from the policy and the last rounds. */
export interface RoundTerms {
  rules: RoundRules;
  /** Maximum groups with equal rewards that the round replaces; absent if the round replaces none. */
  maxReplacedGroups?: number;
  /** Maximum tokens of groups of the queue in the round; absent: no limit. */
  keepTokens?: number;
  /** Places of new groups by domain ('' = all domains without a quota); absent without quotas. */
  places?: { domain: string; places: number }[];
  choice?: TailChoice;
  /** State of adaptive policies after this round. */
  control?: TailControl;
}

/** With nine, a step generates at most ten batches, the default of verl's recipe for DAPO (`max_num_gen_batches`). */
const REPLACED_PER_GROUP = 9;

/** Whether a policy needs the lengths and times of the last rounds. */
export function looksBack({ name, overProvisionMode, dripMode, maxOffPolicyShare }: TailPolicy): boolean {
  const isAdaptive = name === 'auto' || overProvisionMode === 'adaptive' || dripMode === 'adaptive';
  return isAdaptive || maxOffPolicyShare !== undefined;
}

/**
 * @param past past of the job; may be empty when the policy does not look back
 * @param resolved policy of the round, if it is known already
 */
export function roundTerms(
  given: TailPolicy,
  { kind, neededGroups, takeGroups }: { kind: RoundKind; neededGroups: number; takeGroups: number },
  past: ControlInput,
  resolved: ResolvedPolicy = resolvePolicy(given, past),
): RoundTerms {
  const { policy, ...chosen } = resolved;
  const { domainQuotas, maxOffPolicyShare } = policy;
  const terms: RoundTerms = { rules: roundRules(policy, kind), ...chosen, ...chooseTail(policy, neededGroups, past) };
  if (terms.rules.equalRewards === 'replace') {
    const most = policy.maxReplacedGroups ?? REPLACED_PER_GROUP * neededGroups;
    terms.maxReplacedGroups = Math.min(most, LIMITS.groupsPerRound - neededGroups);
  }
  const groupTokens = meanGroupTokens(past.history ?? []);
  // Without a history (after a restore) the limit cannot be computed, and no tokens are thrown away.
  if (maxOffPolicyShare !== undefined && groupTokens > 0) {
    terms.keepTokens = Math.floor(maxOffPolicyShare * neededGroups * groupTokens);
  }
  if (domainQuotas !== undefined) {
    const free = neededGroups - (terms.rules.reservesTaken ? Math.min(neededGroups, takeGroups) : 0);
    const sum = Object.values(domainQuotas).reduce((total, quota) => total + quota, 0);
    const shares = Object.entries(sharePlaces(domainQuotas, Math.max(neededGroups, sum), free));
    const rest = shares.reduce((left, [, share]) => left - share, free);
    terms.places = [...shares, ['', rest] as const].map(([domain, places]) => ({ domain, places }));
  }
  return terms;
}
