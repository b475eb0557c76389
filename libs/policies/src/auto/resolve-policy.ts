import type { TailChoice, TailPolicy } from '@broomwagon/contracts';
import type { ControlInput, FixedPolicy, TailControl } from '../tail';
import { toEnd } from '../what-if/what-if';
import { chooseAuto, type ChosenAuto } from './choose-auto';
import { DEFAULT_VERSION_SPAN } from './predict-rows';

/** The policy that a round has. */
export interface ResolvedPolicy {
  policy: FixedPolicy;
  /** Choice of `auto`; absent under other policies. */
  choice?: TailChoice;
  control?: TailControl;
}

/**
 * Resolves the policy of the next round: the given policy, or the choice of `auto` from the closed rounds. The same
 * past gives the same policy, so a plan and the opening of its round agree.
 */
export function resolvePolicy(given: TailPolicy, past: ControlInput): ResolvedPolicy {
  if (given.name === 'auto') return withChoice(given, toEnd(chooseAuto(given, past)));
  return { policy: { ...given, name: given.name, overProvision: given.overProvision ?? 1 } };
}

/** Choice of `auto` as a policy, with the fields of the given policy that the choice does not depend on. */
export function withChoice(given: TailPolicy, auto: ChosenAuto): ResolvedPolicy {
  const { name, overProvision } = auto.state;
  // The other bounds are kept by the choice: nothing is thrown away for them.
  const policy = { ...given, maxOffPolicyShare: undefined, maxLengthBias: undefined, maxWaste: undefined };
  return {
    policy: { ...policy, name, overProvision, maxVersionSpan: given.maxVersionSpan ?? DEFAULT_VERSION_SPAN },
    choice: { overProvision, auto: auto.choice },
    control: { auto: auto.state },
  };
}
