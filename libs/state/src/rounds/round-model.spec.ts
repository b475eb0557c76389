import { ABORT_SCOPES } from '@broomwagon/contracts';
import { findPolicyFault } from '@broomwagon/policies';
import fc from 'fast-check';
import { afterAll, expect, inject, it, vi } from 'vitest';
import { anyTailPolicy, decisions } from '../../../../lab/models/src/rounds/interleave.fixture';
import { RoundWorld } from '../../../../lab/models/src/rounds/round-world.fixture';
import { closeStores, ScriptRounds } from './script-rounds.fixture';

/** Number of random data sets. */
const RUNS = 15 * inject('runsFactor');
vi.setConfig({ testTimeout: 120_000 + RUNS * 10_000 });

afterAll(closeStores);

const settings = fc.record({
  groups: fc.integer({ min: 1, max: 10 }),
  samples: fc.integer({ min: 1, max: 3 }),
  groupsPerStep: fc.integer({ min: 2, max: 4 }),
  policy: anyTailPolicy,
  minSamples: fc.option(fc.constantFrom(1, 2), { nil: undefined }),
  abortScope: fc.option(fc.constantFrom(...ABORT_SCOPES), { nil: undefined }),
});

it('the scripts give the results of the model of rounds, whatever the policy and the order of events', async () => {
  const seen = { steps: 0, requeues: 0, restores: 0, moves: 0, weightChanges: 0, gathered: 0 };
  await fc.assert(
    fc.asyncProperty(settings, decisions, async ({ minSamples, ...setting }, decide) => {
      fc.pre(findPolicyFault(setting.policy, setting.groupsPerStep) === undefined);
      const scripts = new ScriptRounds();
      await scripts.start();
      const least = minSamples && Math.min(minSamples, setting.samples);
      const world = new RoundWorld({ ...setting, minSamples: least }, decide, scripts);
      await world.run();
      for (const name of Object.keys(seen) as (keyof typeof seen)[]) seen[name] += world[name];
      await scripts.end();
    }),
    { numRuns: RUNS },
  );
  expect(seen.steps).toBeGreaterThan(RUNS);
  expect(
    Object.values(seen).every((count) => count > 0),
    JSON.stringify(seen),
  ).toBe(true);
});

it('the scripts give the results of the model when a dropped group is reconciled and the job restored twice', async () => {
  const scripts = new ScriptRounds();
  await scripts.start();
  const policy = { name: 'resume', overProvision: 1, shortfall: 'accept-fewer' } as const;
  const world = new RoundWorld({ groups: 3, samples: 1, groupsPerStep: 2, policy }, () => 0, scripts);
  await world.act(['train', 'dropGroup', 'claim', 'complete', 'train', 'snapshot']);
  await world.act(['reconcile', 'restore', 'restore', 'train']);
  expect(world.restores).toBe(2);
  expect(world.model.groups.dropped).toBe(1);
  await scripts.end();
});
