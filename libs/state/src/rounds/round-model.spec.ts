import { ABORT_SCOPES, TAIL_POLICIES, type TailPolicy } from '@broomwagon/contracts';
import { findPolicyFault } from '@broomwagon/policies';
import fc from 'fast-check';
import { afterAll, expect, it, vi } from 'vitest';
import { closeStores } from './attempt-pair.fixture';
import { RoundPair } from './round-model.fixture';

/** Data sets of one run of this test; `MODEL_RUNS=1000` looks deeper. */
const RUNS = Number(process.env.MODEL_RUNS ?? 15);
vi.setConfig({ testTimeout: 120_000 + RUNS * 10_000 });

afterAll(closeStores);

const policies: fc.Arbitrary<TailPolicy> = fc
  .record(
    {
      name: fc.constantFrom(...TAIL_POLICIES),
      overProvision: fc.constantFrom(1, 1.5, 2),
      overProvisionMode: fc.constantFrom('fixed', 'adaptive'),
      sampleOverProvision: fc.constantFrom(1, 1.5, 2),
      onCut: fc.constantFrom('keep', 'discard'),
      dripMode: fc.constantFrom('fixed', 'adaptive'),
      domainQuotas: fc.constantFrom({ d0: 1 }, { d0: 1, d1: 1 }),
      maxCuts: fc.constantFrom(1, 2),
      maxAgeSteps: fc.constantFrom(1, 2),
      maxVersionSpan: fc.constantFrom(2, 4),
      maxOffPolicyShare: fc.constantFrom(0.1, 0.4),
      maxLongtailShare: fc.constantFrom(0.5),
      maxFailures: fc.constantFrom(0, 1),
      maxReturns: fc.constantFrom(0, 2, 1_000),
      deadlineMs: fc.constantFrom(50),
    },
    { requiredKeys: ['name', 'overProvision', 'maxFailures'] },
  )
  .map((policy) => {
    const concurrency = policy.name === 'fixed-concurrency' ? { concurrency: 3 } : {};
    return { ...policy, ...concurrency, shortfall: 'accept-fewer' } as TailPolicy;
  });

const scopes = fc.option(fc.constantFrom(...ABORT_SCOPES), { nil: undefined });

it('the scripts do what the model of rounds does, whatever the policy and the order of events', async () => {
  let steps = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 10 }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 2, max: 4 }),
      policies,
      fc.record({ minSamples: fc.option(fc.constantFrom(1, 2), { nil: undefined }), abortScope: scopes }),
      fc.infiniteStream(fc.nat()),
      async (groups, samples, groupsPerStep, policy, { minSamples, abortScope }, stream) => {
        fc.pre(findPolicyFault(policy, groupsPerStep) === undefined);
        const decide = (choices: number): number => (stream.next().value as number) % choices;
        const pair = new RoundPair(
          {
            groups,
            samples,
            groupsPerStep,
            policy,
            minSamples: minSamples && Math.min(minSamples, samples),
            abortScope,
          },
          decide,
        );
        await pair.start();
        for (let turn = 0; turn < 2_000; turn++) {
          if (decide(2) > 0) await pair.work();
          else if (!(await pair.train())) break;
          await pair.compare();
        }
        steps += pair.steps;
        await pair.end();
      },
    ),
    { numRuns: RUNS },
  );
  expect(steps).toBeGreaterThan(RUNS);
});
