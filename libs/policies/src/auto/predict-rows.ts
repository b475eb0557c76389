import { AUTO_BOUNDS, type AutoBound, type AutoRow, type TailPolicy } from '@broomwagon/contracts';
import type { AutoState, ControlInput, CostFactors, FixedPolicy, FixedPolicyName, MeasuredCosts } from '../tail';
import { type RecordedSamples, whatIfSteps, type WhatIfOutcome } from '../what-if/what-if';

/** Fields of a policy that the choice reads: the bounds of `auto`, and bounds that every policy has. */
export const AUTO_FIELDS = [...AUTO_BOUNDS, 'maxCuts', 'maxAgeSteps', 'maxLongtailShare'] as const;
export type AutoPolicy = Pick<TailPolicy, 'name' | (typeof AUTO_FIELDS)[number]>;

/** Weight versions that a group may span under `auto`, if the policy has no `maxVersionSpan`. */
export const DEFAULT_VERSION_SPAN = 2;
/** Maximum change of the over-provision from one round to the next. */
export const AUTO_STEP = 1 / 8;
const OVER_PROVISIONS = Array.from({ length: 8 }, (_, index) => 1 + (index + 1) * AUTO_STEP);
/** Policies that keep the tokens of cut groups, and so train every started sample. */
const UNBIASED: readonly FixedPolicyName[] = ['resume', 'drip'];

/** Returns the bounds that a replay keeps like a real round: bounds that pin groups, and the share of the queue. */
export function boundsOfReplay({ name, maxCuts, maxAgeSteps, maxLongtailShare, maxVersionSpan }: AutoPolicy) {
  const defaultSpan = name === 'auto' ? DEFAULT_VERSION_SPAN : undefined;
  return { maxCuts, maxAgeSteps, maxLongtailShare, maxVersionSpan: maxVersionSpan ?? defaultSpan };
}

type Costs = Pick<AutoRow, 'offPolicyShare' | 'versionSpan' | 'lengthBias' | 'wasteShare'>;

/** Returns the bounds of `auto` that the costs break. */
export function brokenBounds(policy: Omit<AutoPolicy, 'name'>, costs: Costs): AutoBound[] {
  const {
    maxOffPolicyShare = 1,
    maxVersionSpan = DEFAULT_VERSION_SPAN,
    maxLengthBias = Infinity,
    maxWaste = 1,
  } = policy;
  const broken: Record<AutoBound, boolean> = {
    maxOffPolicyShare: costs.offPolicyShare > maxOffPolicyShare,
    maxVersionSpan: costs.versionSpan > maxVersionSpan,
    maxLengthBias: Math.abs(costs.lengthBias - 1) > maxLengthBias,
    maxWaste: costs.wasteShare > maxWaste,
  };
  return (Object.keys(broken) as AutoBound[]).filter((bound) => broken[bound]);
}

/** How much higher measured costs were than predicted costs. */
export type Learned = Required<Pick<AutoState, 'factors' | 'leastWaste'>>;
const COSTS: readonly (keyof CostFactors)[] = ['offPolicyShare', 'lengthBias', 'wasteShare'];

/** Predicted rows, at least of `wait` and the last choice. */
export interface Prediction {
  rows: AutoRow[];
  /** Corrections that raise the predicted costs. */
  learned: Learned;
  /** True if some policies were not replayed, because `isLate` returned true. */
  isPartial: boolean;
}

/**
 * Predicts the costs and the speed of `wait`, and of each other policy at each over-provision. `wait` and the last
 * choice are always replayed; the other candidates follow, nearest to the last choice first, until `isLate` returns
 * true. Yields after each replayed step.
 * @param past.measured costs in the ledger. A cost that is higher than predicted for the last choice raises the
 *   predictions of all policies by the same factor, if no earlier factor is higher. A predicted waste of 0 has no
 *   factor: if the ledger then breaks `maxWaste`, the measured waste is predicted for all policies, in proportion to
 *   their over-provision
 * @param past.over bounds that the ledger breaks
 */
export function* predictRows(
  policy: AutoPolicy,
  samples: RecordedSamples,
  { last, measured, over }: { last: AutoState; measured: ControlInput['measured']; over: readonly AutoBound[] },
  isLate: () => boolean,
): Generator<void, Prediction> {
  const bounds = boundsOfReplay(policy);
  const candidates = listCandidates(policy);
  const distance = ({ name, overProvision }: Candidate): number => {
    if (name === 'wait') return -2;
    return isSame({ name, overProvision }, last) ? -1 : Math.abs(overProvision - last.overProvision);
  };
  const found = new Map<Candidate, WhatIfOutcome>();
  for (const candidate of candidates.toSorted((one, other) => distance(one) - distance(other))) {
    if (distance(candidate) >= 0 && isLate()) break;
    const tried: FixedPolicy = { ...bounds, ...candidate };
    found.set(candidate, yield* whatIfSteps(samples, tried));
  }
  const replayed = candidates.filter((one) => found.has(one)).map((one) => ({ ...one, ...found.get(one)! }));
  const [wait] = replayed;
  const own = replayed.find((one) => one.name !== 'wait' && isSame(one, last));
  const learned = learn(last, own, measured, over);
  const rows = replayed.map(({ name, overProvision, tokensPerTime, ...outcome }) => {
    const predicted = toCostFactors(outcome);
    const raised = (cost: keyof CostFactors): number => predicted[cost] * learned.factors[cost];
    const leastWaste = learned.leastWaste * (overProvision - 1);
    const costs: Costs = {
      offPolicyShare: Math.min(1, raised('offPolicyShare')),
      versionSpan: outcome.versionSpan,
      lengthBias: Math.max(0, outcome.lengthBias > 1 ? 1 + raised('lengthBias') : 1 - raised('lengthBias')),
      wasteShare: Math.min(1, Math.max(leastWaste, raised('wasteShare'))),
    };
    const speed = wait!.tokensPerTime === 0 ? 1 : tokensPerTime / wait!.tokensPerTime;
    return { policy: name, overProvision, speed, ...costs, breaks: brokenBounds(policy, costs) };
  });
  return { rows, learned, isPartial: replayed.length < candidates.length };
}

/** @param own predicted costs of the last choice; undefined if the last choice is `wait` */
function learn(
  last: AutoState,
  own: MeasuredCosts | undefined,
  measured: MeasuredCosts | undefined,
  over: readonly AutoBound[],
): Learned {
  const factors = { offPolicyShare: 1, lengthBias: 1, wasteShare: 1, ...last.factors };
  let { leastWaste = 0 } = last;
  if (own === undefined || measured === undefined) return { factors, leastWaste };
  const [predicted, seen] = [toCostFactors(own), toCostFactors(measured)];
  for (const cost of COSTS) {
    if (predicted[cost] > 0) factors[cost] = Math.max(factors[cost], seen[cost] / predicted[cost]);
  }
  // Other costs that are predicted as 0 need no correction: the costs in the ledger come from earlier choices.
  if (predicted.wasteShare === 0 && over.includes('maxWaste')) {
    leastWaste = Math.max(leastWaste, seen.wasteShare / (last.overProvision - 1));
  }
  return { factors, leastWaste };
}

function toCostFactors({ offPolicyShare, lengthBias, wasteShare }: MeasuredCosts): CostFactors {
  return { offPolicyShare, lengthBias: Math.abs(lengthBias - 1), wasteShare };
}

type Candidate = Pick<FixedPolicy, 'name' | 'overProvision'>;

function listCandidates({ maxLengthBias }: AutoPolicy): Candidate[] {
  const names: FixedPolicyName[] = maxLengthBias === undefined ? [...UNBIASED] : [...UNBIASED, 'regenerate'];
  const others = OVER_PROVISIONS.flatMap((overProvision) => names.map((name) => ({ name, overProvision })));
  return [{ name: 'wait', overProvision: 1 }, ...others];
}

function isSame(one: Candidate, other: Candidate): boolean {
  return one.name === other.name && one.overProvision === other.overProvision;
}
