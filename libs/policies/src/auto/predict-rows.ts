import { AUTO_BOUNDS, type AutoBound, type AutoRow, type TailPolicy } from '@broomwagon/contracts';
import type { AutoState, ControlInput, CostFactors, FixedPolicy, FixedPolicyName, MeasuredCosts } from '../tail';
import { type RecordedSamples, whatIfSteps, type WhatIfOutcome } from '../what-if/what-if';

/**
 * All fields of a policy that the choice reads: the bounds of `auto`, and the bounds that every policy keeps by itself.
 */
export const AUTO_FIELDS = [...AUTO_BOUNDS, 'maxCuts', 'maxAgeSteps', 'maxLongtailShare'] as const;
export type AutoPolicy = Pick<TailPolicy, 'name' | (typeof AUTO_FIELDS)[number]>;

/** Weight versions that a group may span, if the trainer names no bound. */
export const DEFAULT_VERSION_SPAN = 2;
/** Most that over-provision changes from one round to the next. */
export const AUTO_STEP = 1 / 8;
const OVER_PROVISIONS = Array.from({ length: 8 }, (_, index) => 1 + (index + 1) * AUTO_STEP);
/** Policies that keep the tokens of cut groups, and so train every sample that is started. */
const UNBIASED: readonly FixedPolicyName[] = ['resume', 'drip'];

/** Bounds that a replay keeps as production does: the bounds that pin groups, and the share of the queue. */
export function boundsOfReplay({ name, maxCuts, maxAgeSteps, maxLongtailShare, maxVersionSpan }: AutoPolicy) {
  const defaultSpan = name === 'auto' ? DEFAULT_VERSION_SPAN : undefined;
  return { maxCuts, maxAgeSteps, maxLongtailShare, maxVersionSpan: maxVersionSpan ?? defaultSpan };
}

type Costs = Pick<AutoRow, 'offPolicyShare' | 'versionSpan' | 'lengthBias' | 'wasteShare'>;

/** The bounds of `auto` that these costs break. */
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

/** How much more the ledger had than was predicted. */
export type Learned = Required<Pick<AutoState, 'factors' | 'leastWaste'>>;
const COSTS: readonly (keyof CostFactors)[] = ['offPolicyShare', 'lengthBias', 'wasteShare'];

/** Rows that were predicted before it was late. */
export interface Prediction {
  rows: AutoRow[];
  /** Corrections by which the costs are raised. */
  learned: Learned;
  /** Not all policies were replayed; `wait` and the last choice always are. */
  isPartial: boolean;
}

/**
 * Predicts the costs and the speed of each policy: `wait`, and the others at each over-provision. `wait` and the last
 * choice are always replayed, then the candidates nearest to the last choice, until it is late. Yields after each
 * replayed step.
 * @param past.measured where the ledger has measured more than is predicted of the last choice, all predictions are
 *   raised by the same factor, or by the factor of an earlier choice that broke a bound. No factor raises a prediction
 *   of no waste: if the bound of the waste broke all the same, every choice wastes the measured share, in proportion to
 *   its over-provision
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

/** @param own predicted costs of the last choice; absent if the last choice is `wait` */
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
  // The other costs are rightly predicted as 0: in the ledger they come from earlier choices.
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
