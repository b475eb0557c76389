import { EQUAL_REWARDS, DISPATCH_ORDERS, TAIL_POLICIES, type TailPolicy } from '@broomwagon/contracts';
import fc from 'fast-check';

/** Draws a number below `choices` with fast-check, to decide the next act or argument. */
export type Decide = (choices: number) => number;

export const decisions: fc.Arbitrary<Decide> = fc
  .infiniteStream(fc.nat())
  .map((stream) => (choices) => (stream.next().value as number) % choices);

/** An act that may happen at any time, with a probability of its weight over the sum of all weights. */
export interface Act {
  weight: number;
  act: () => Promise<unknown>;
}

/** Runs acts in an order that `decide` chooses, and `check` after each act, until an act returns false. */
export async function interleave(decide: Decide, acts: readonly Act[], check: () => Promise<void>): Promise<void> {
  const total = acts.reduce((sum, { weight }) => sum + weight, 0);
  for (let turn = 0; turn < 100_000; turn++) {
    let ticket = decide(total);
    const chosen = acts.find(({ weight }) => (ticket -= weight) < 0)!;
    if ((await chosen.act()) === false) return;
    await check();
  }
  throw new Error('The data set has no end');
}

const CHOSEN_BY_AUTO = {
  overProvision: undefined,
  overProvisionMode: undefined,
  sampleOverProvision: undefined,
  onCut: undefined,
  dripGroups: undefined,
  dripMode: undefined,
};

/** Tail policies with any of their bounds. The trainer has no replacements for groups that fail. */
export const anyTailPolicy: fc.Arbitrary<TailPolicy> = fc
  .record(
    {
      name: fc.constantFrom(...TAIL_POLICIES),
      overProvision: fc.constantFrom(1, 1.25, 1.5, 2),
      overProvisionMode: fc.constantFrom('fixed', 'adaptive'),
      sampleOverProvision: fc.constantFrom(1, 1.5, 2),
      onCut: fc.constantFrom('keep', 'discard'),
      dripGroups: fc.constantFrom(1, 2),
      dripMode: fc.constantFrom('fixed', 'adaptive'),
      dripReserved: fc.boolean(),
      concurrency: fc.constantFrom(1, 3, 8),
      dispatchOrder: fc.constantFrom(...DISPATCH_ORDERS),
      domainQuotas: fc.constantFrom({ d0: 1 }, { d0: 1, constructor: 1 }),
      maxCuts: fc.constantFrom(1, 2),
      maxAgeSteps: fc.constantFrom(1, 2, 3),
      maxVersionSpan: fc.constantFrom(2, 4),
      maxOffPolicyShare: fc.constantFrom(0.1, 0.3),
      maxLongtailShare: fc.constantFrom(0.3, 0.5),
      maxFailures: fc.constantFrom(0, 1),
      maxReturns: fc.constantFrom(0, 2, 1_000),
      deadlineMs: fc.constantFrom(50),
      equalRewards: fc.constantFrom(...EQUAL_REWARDS),
      maxReplacedGroups: fc.constantFrom(1, 2),
    },
    { requiredKeys: ['name', 'overProvision'] },
  )
  .map(({ dripReserved, ...policy }) => ({
    ...policy,
    ...(policy.name === 'auto' ? CHOSEN_BY_AUTO : {}),
    shortfall: 'accept-fewer' as const,
    maxReplacedGroups: policy.equalRewards === 'replace' ? policy.maxReplacedGroups : undefined,
    dripReserved: policy.name === 'drip' && policy.dripMode !== 'adaptive' ? dripReserved : undefined,
    concurrency: policy.name === 'fixed-concurrency' ? (policy.concurrency ?? 4) : undefined,
  })) as fc.Arbitrary<TailPolicy>;
