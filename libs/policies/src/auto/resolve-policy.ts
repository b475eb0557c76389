import type { TailChoice, TailPolicy } from '@broomwagon/contracts';
import type { ControlInput, FixedPolicy, TailControl } from '../tail';
import { toEnd } from '../what-if/what-if';
import { chooseAuto, type ChosenAuto } from './choose-auto';
import { DEFAULT_VERSION_SPAN } from './predict-rows';

/** The policy of a round, after a choice of `auto`. */
export interface ResolvedPolicy {
  policy: FixedPolicy;
  /** Choice of `auto`; absent under other policies. */
  choice?: TailChoice;
  control?: TailControl;
}

/**
 * Resolves the policy of the next round: the given policy, or the choice of `auto` from the closed rounds. The same
 * past gives the same policy, so `round.next` and `round.open` agree.
 */
export function resolvePolicy(given: TailPolicy, past: ControlInput): ResolvedPolicy {
  if (given.name === 'auto') return withChoice(given, toEnd(chooseAuto(given, past)));
  return { policy: { ...given, name: given.name, overProvision: given.overProvision ?? 1 } };
}

/** Returns the choice of `auto` as a policy, with the other fields of the given policy. */
export function withChoice(given: TailPolicy, auto: ChosenAuto): ResolvedPolicy {
  const { name, overProvision } = auto.state;
  // The choice already keeps these three bounds, so that no token is thrown away for a bound.
  const policy = { ...given, maxOffPolicyShare: undefined, maxLengthBias: undefined, maxWaste: undefined };
  return {
    policy: { ...policy, name, overProvision, maxVersionSpan: given.maxVersionSpan ?? DEFAULT_VERSION_SPAN },
    choice: { overProvision, auto: auto.choice },
    control: { auto: auto.state },
  };
}
