import type { AutoBound, AutoRow, TailPolicy } from '@broomwagon/contracts';
import type { ControlInput, FixedPolicy, FixedPolicyName, TailControl } from '../tail';
import { type RecordedSamples, whatIf, type WhatIfOutcome } from '../what-if/what-if';

/** The bounds of `auto`, and those that each policy keeps by itself. */
export type AutoPolicy = Pick<TailPolicy, AutoBound | 'maxCuts' | 'maxAgeSteps' | 'maxLongtailShare'>;

/** Weight versions that a group may span, if the trainer names no bound. */
export const DEFAULT_VERSION_SPAN = 2;
/** Most that over-provision changes from one round to the next. */
export const AUTO_STEP = 1 / 8;
const OVER_PROVISIONS = Array.from({ length: 8 }, (_, index) => 1 + (index + 1) * AUTO_STEP);
/** They keep the tokens of what they cut, and so train every sample that is begun. */
const UNBIASED: readonly FixedPolicyName[] = ['resume', 'drip'];

type Costs = Pick<AutoRow, 'offPolicyShare' | 'versionSpan' | 'lengthBias' | 'wasteShare'>;

/** The bounds of `auto` that these costs break. */
export function brokenBounds(policy: AutoPolicy, costs: Costs): AutoBound[] {
  const { maxOffPolicyShare = 1, maxVersionSpan = DEFAULT_VERSION_SPAN, maxLengthBias = 1, maxWaste = 1 } = policy;
  const broken: Record<AutoBound, boolean> = {
    maxOffPolicyShare: costs.offPolicyShare > maxOffPolicyShare,
    maxVersionSpan: costs.versionSpan > maxVersionSpan,
    maxLengthBias: Math.abs(costs.lengthBias - 1) > maxLengthBias,
    maxWaste: costs.wasteShare > maxWaste,
  };
  return (Object.keys(broken) as AutoBound[]).filter((bound) => broken[bound]);
}

/**
 * What each policy would do to the samples: `wait`, then the others at each over-provision.
 * @param last where the ledger has measured more than is predicted, all predictions are raised by the same factor
 */
export function predictRows(
  policy: AutoPolicy,
  samples: RecordedSamples,
  last: NonNullable<TailControl['auto']>,
  measured: ControlInput['measured'],
): AutoRow[] {
  const { maxCuts, maxAgeSteps, maxLongtailShare, maxVersionSpan = DEFAULT_VERSION_SPAN } = policy;
  const bounds = { maxCuts, maxAgeSteps, maxLongtailShare, maxVersionSpan };
  const replay = (name: FixedPolicyName, overProvision: number): Outcome => {
    const tried: FixedPolicy = { ...bounds, name, overProvision };
    return { name, overProvision, ...whatIf(samples, tried) };
  };
  const names: FixedPolicyName[] = policy.maxLengthBias === undefined ? [...UNBIASED] : [...UNBIASED, 'regenerate'];
  const wait = replay('wait', 1);
  const others = OVER_PROVISIONS.flatMap((overProvision) => names.map((name) => replay(name, overProvision)));
  const own = others.find(({ name, overProvision }) => name === last.name && overProvision === last.overProvision);
  const more = (predicted = 0, found = 0): number => (predicted > 0 ? Math.max(1, found / predicted) : 1);
  const oldFactor = more(own?.offPolicyShare, measured?.offPolicyShare);
  const wasteFactor = more(own?.wasteShare, measured?.waste.share);
  return [wait, ...others].map(({ name, overProvision, tokensPerTime, ...outcome }) => {
    const costs: Costs = {
      offPolicyShare: Math.min(1, outcome.offPolicyShare * oldFactor),
      versionSpan: outcome.versionSpan,
      lengthBias: name === 'regenerate' ? outcome.lengthBias : 1,
      wasteShare: Math.min(1, outcome.wasteShare * wasteFactor),
    };
    const speed = wait.tokensPerTime === 0 ? 1 : tokensPerTime / wait.tokensPerTime;
    return { policy: name, overProvision, speed, ...costs, breaks: brokenBounds(policy, costs) };
  });
}

interface Outcome extends WhatIfOutcome {
  name: FixedPolicyName;
  overProvision: number;
}
