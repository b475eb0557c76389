import { TAIL_POLICIES, type TailPolicyName } from '@broomwagon/contracts';
import fc from 'fast-check';
import { RUNS, type World } from './data-set-world.fixture';

const ACTIONS = [
  'claim',
  'grant',
  'checkpoint',
  'complete',
  'fail',
  'sweep',
  'repeat',
  'expiredWorker',
  'takeover',
  'abort',
] as const;
/** How often each action comes, of 40; the trainer has the rest. */
export const WEIGHTS: Record<(typeof ACTIONS)[number], number> = {
  claim: 4,
  grant: 2,
  checkpoint: 5,
  complete: 6,
  fail: 3,
  sweep: 4,
  repeat: 10,
  expiredWorker: 1,
  takeover: 1,
  abort: 0,
};

/**
 * Runs a whole data set and returns its world; every step is followed by an audit of the counts.
 * @param another one more action, with its weight
 */
export async function runDataSet(
  world: World,
  decide: (choices: number) => number,
  weights: typeof WEIGHTS = WEIGHTS,
  another: { weight: number; act: () => Promise<unknown> } = { weight: 0, act: async () => undefined },
): Promise<World> {
  await world.start();
  for (let turn = 0; turn < 20_000; turn++) {
    let ticket = decide(40);
    const action = ACTIONS.find((name) => (ticket -= weights[name]) < 0);
    if (action !== undefined) await world[action]();
    else if ((ticket -= another.weight) < 0) await another.act();
    else if (!(await world.train())) break;
    await world.audit();
  }
  // What is left is folded, but for what waits for a worker that has not heard of its end.
  await world.settle();
  return world;
}

/** A data set of random size, its policy, and who decides what comes next. */
export interface RandomDataSet {
  groups: number;
  samples: number;
  groupsPerStep: number;
  name: TailPolicyName;
  overProvision: number;
  decide: (choices: number) => number;
}
const DATA_SET = fc.record({
  groups: fc.integer({ min: 1, max: 9 }),
  samples: fc.integer({ min: 1, max: 3 }),
  groupsPerStep: fc.integer({ min: 1, max: 4 }),
  name: fc.constantFrom(...TAIL_POLICIES),
  overProvision: fc.constantFrom(1, 1.5, 2),
  stream: fc.infiniteStream(fc.nat()),
});

/** Holds a property for data sets of every kind, or of one policy. */
export function forDataSets(
  property: (dataSet: RandomDataSet) => Promise<void>,
  { runs = RUNS, name }: { runs?: number; name?: TailPolicyName } = {},
): Promise<void> {
  const check = ({ stream, ...dataSet }: Omit<RandomDataSet, 'decide'> & { stream: fc.Stream<number> }) => {
    const decide = (choices: number) => (stream.next().value as number) % choices;
    return property({ ...dataSet, ...(name && { name }), decide });
  };
  return fc.assert(fc.asyncProperty(DATA_SET, check), { numRuns: runs });
}
