import type { TailPolicy } from '@broomwagon/contracts';
import { afterAll, describe, expect, it } from 'vitest';
import { aborts, endWorlds, JOB, rounds, RUNS, World } from '../rounds/data-set-world.fixture';
import { forDataSets, runDataSet, WEIGHTS } from '../rounds/run-data-set.fixture';

afterAll(endWorlds);

describe('aborts of groups and of single samples among submits, claims, completions, failures and dead workers', () => {
  it('ends every group exactly once, loses no abort, and keeps the counts exact', async () => {
    await forDataSets(
      async ({ groups, samples, groupsPerStep, name, decide }) => {
        const policy: TailPolicy = {
          name,
          overProvision: 1.5,
          shortfall: 'accept-fewer',
          maxFailures: 0,
          maxCuts: decide(2) === 0 ? 1 : undefined,
          sampleOverProvision: name !== 'wait' && decide(2) === 0 ? 1.5 : 1,
        };
        const minSamples = decide(3) === 0 ? samples : 1;
        const world = new World(groups, samples, groupsPerStep, policy, decide, minSamples);
        await runDataSet(world, decide, { ...WEIGHTS, repeat: 8, abort: 2 });
        await world.stopWorkers();

        const status = await rounds.jobStatus(world.pool, { job: JOB });
        expect(status.trainedGroups).toBe(world.trained.size);
        expect(status.trainedGroups + status.failedGroups + status.droppedGroups).toBe(groups);
        expect(status.longtail).toEqual({ groups: 0, settlingGroups: 0 });
        const { submitted, trained, failed, dropped } = status.requests;
        expect(trained + failed + dropped).toBe(submitted);
        for (const groupId of world.aborts.intended)
          expect(world.trained.has(groupId), `${groupId} trained`).toBe(false);
        expect(status.droppedGroups).toBeGreaterThanOrEqual(world.aborts.intended.size);
        expect(await rounds.due(world.pool)).toMatchObject({ aborts: [], aborting: 0 });
        for (const abortId of world.aborts.ids) {
          const results = await world.aborts.readResults(abortId);
          expect(new Set(results.map(({ requestId }) => requestId)).size).toBe(results.length);
          expect(results.map(({ outcome }) => outcome)).not.toContain('aborting');
        }
        expect(await aborts.forget(world.pool)).toEqual({ more: false });
        await world.end();
      },
      { runs: 2 * RUNS },
    );
  });
});
