import type { RoundPlan, TailPolicy } from '@broomwagon/contracts';
import { type ResolvedPolicy, resolvePolicy } from '../auto';
import { type FormInput, formRound, type PlanProgress } from '../forming/form-round';

/** Inputs of a plan that the trainer provides. */
export interface PlanInput extends Omit<FormInput, 'policy'> {
  policy: TailPolicy;
}

/**
 * Plans the next round, see {@link formRound}; under `auto`, with the policy that it chooses for this round.
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
