import { TAIL_POLICIES, type TailPolicy } from '@broomwagon/contracts';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { endWorlds, JOB, ledgers, rounds, RUNS, World } from './data-set-world.fixture';
import { forDataSets, runDataSet } from './run-data-set.fixture';

afterAll(endWorlds);

/** Expects that the ledger of the job equals the sum of its results, and that no cut sample is left open. */
async function expectWorldLedger({ pool, trained }: World): Promise<void> {
  const { counters, open } = await ledgers.read(pool, { job: JOB });
  const samples = [...trained.values()].flatMap((group) => group.samples);
  const sum = (prefix: string) =>
    Object.entries(counters).reduce((total, [name, count]) => total + (name.startsWith(prefix) ? count : 0), 0);
  expect(open).toEqual({});
  expect(counters).toMatchObject({
    'trained.samples': samples.length,
    'trained.tokens': samples.reduce((total, { tokenCount }) => total + tokenCount, 0),
  });
  expect(sum('trained.length.')).toBe(samples.length);
  expect(sum('groups.cuts.')).toBe(trained.size);
  // Each trained sample has ended once, or more often if it was generated again.
  expect(sum('ended.length.')).toBeGreaterThanOrEqual(samples.length);
  expect(sum('ended.length.') - samples.length).toBeLessThanOrEqual(
    counters['waste.unaccepted'] === undefined ? 0 : Infinity,
  );
}

describe('a whole data set under random interleavings, repeats, failures and dead workers', () => {
  for (const name of TAIL_POLICIES) {
    it(`trains every group exactly once in ceil(N/G) steps with exact counts: ${name}`, () =>
      forDataSets(
        async ({ groups, samples, groupsPerStep, overProvision, decide }) => {
          const policy: TailPolicy = { name, overProvision };
          const world = await runDataSet(new World(groups, samples, groupsPerStep, policy, decide), decide);
          expect(world.trained.size).toBe(groups);
          expect(world.steps).toBe(Math.ceil(groups / groupsPerStep));
          const { requests: counts, ...job } = await rounds.jobStatus(world.pool, { job: JOB });
          expect(counts).toMatchObject({ submitted: groups * samples, trained: groups * samples });
          expect(job).toMatchObject({ trainedGroups: groups, longtail: { groups: 0, settlingGroups: 0 } });
          await expectWorldLedger(world);
          await world.end();
        },
        { name, runs: inject('runsFactor') === 1 ? RUNS / 2 : RUNS },
      ));
  }

  it('ends every group exactly once, trained or failed, when requests fail for good', () =>
    forDataSets(async ({ groups, samples, groupsPerStep, name, decide }) => {
      const policy: TailPolicy = { name, overProvision: 1.5, shortfall: 'accept-fewer', maxFailures: 0 };
      const world = await runDataSet(new World(groups, samples, groupsPerStep, policy, decide), decide);
      const status = await rounds.jobStatus(world.pool, { job: JOB });
      expect(status.trainedGroups).toBe(world.trained.size);
      expect(status.trainedGroups + status.failedGroups).toBe(groups);
      expect(status.longtail).toEqual({ groups: 0, settlingGroups: 0 });
      const { submitted, trained, failed, dropped } = status.requests;
      expect(trained + failed + dropped).toBe(submitted);
      await world.end();
    }));
});
