import { TAIL_POLICIES, type TailPolicyName } from '@broomwagon/contracts';
import fc from 'fast-check';
import { type Act, type Decide, decisions, interleave } from '../../../../lab/models/src/rounds/interleave.fixture';
import { RUNS, type World } from './data-set-world.fixture';

const ACTIONS = [
  'claim',
  'grant',
  'savePartial',
  'complete',
  'fail',
  'sweep',
  'repeat',
  'expiredWorker',
  'takeover',
  'abort',
] as const;
const TOTAL = 40;
/** Frequency of each action, out of TOTAL. The trainer has the rest. */
export const WEIGHTS: Record<(typeof ACTIONS)[number], number> = {
  claim: 4,
  grant: 2,
  savePartial: 5,
  complete: 6,
  fail: 3,
  sweep: 4,
  repeat: 10,
  expiredWorker: 1,
  takeover: 1,
  abort: 0,
};

/**
 * Runs a whole data set and returns its world. An audit of the counts follows every step.
 * @param another one more action, with its weight
 */
export async function runDataSet(
  world: World,
  decide: Decide,
  weights: typeof WEIGHTS = WEIGHTS,
  another: Act = { weight: 0, act: async () => undefined },
): Promise<World> {
  await world.start();
  const acts: Act[] = [...ACTIONS.map((name) => ({ weight: weights[name], act: () => world[name]() })), another];
  const train = { weight: acts.reduce((rest, { weight }) => rest - weight, TOTAL), act: () => world.train() };
  await interleave(decide, [...acts, train], () => world.audit());
  // All remaining groups are folded, except for groups that wait for a worker which has not learned their end yet.
  await world.settle();
  return world;
}

/** A data set of random size with its policy, and the source of random decisions. */
export interface RandomDataSet {
  groups: number;
  samples: number;
  groupsPerStep: number;
  name: TailPolicyName;
  overProvision: number;
  decide: Decide;
}
const DATA_SET = fc.record({
  groups: fc.integer({ min: 1, max: 9 }),
  samples: fc.integer({ min: 1, max: 3 }),
  groupsPerStep: fc.integer({ min: 1, max: 4 }),
  name: fc.constantFrom(...TAIL_POLICIES),
  overProvision: fc.constantFrom(1, 1.5, 2),
  decide: decisions,
});

/** Checks a property for random data sets of every policy, or of the policy `name`. */
export function forDataSets(
  property: (dataSet: RandomDataSet) => Promise<void>,
  { runs = RUNS, name }: { runs?: number; name?: TailPolicyName } = {},
): Promise<void> {
  const check = (dataSet: RandomDataSet) => property({ ...dataSet, ...(name && { name }) });
  return fc.assert(fc.asyncProperty(DATA_SET, check), { numRuns: runs });
}
