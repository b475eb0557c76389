import type { TailPolicy } from '@broomwagon/contracts';
import { afterAll, describe, expect, it } from 'vitest';
import { aborts, endWorlds, JOB, rounds, RUNS, World } from '../rounds/data-set-world.fixture';
import { forDataSets, runDataSet, WEIGHTS } from '../rounds/run-data-set.fixture';

afterAll(endWorlds);

describe('aborts among submits, claims, checkpoints, completions, failures and dead workers', () => {
  it('ends every group exactly once, loses no abort, and keeps the books exact', async () => {
    await forDataSets(
      async ({ groups, samples, groupsPerStep, name, decide }) => {
        const policy: TailPolicy = { name, overProvision: 1.5, shortfall: 'accept-fewer', maxFailures: 0 };
        const world = new World(groups, samples, groupsPerStep, policy, decide);
        await runDataSet(world, decide, { ...WEIGHTS, repeat: 8, abort: 2 });
        await world.stopWorkers();

        const status = await rounds.jobStatus(world.pool, JOB);
        expect(status.trainedGroups).toBe(world.trained.size);
        expect(status.trainedGroups + status.failedGroups + status.droppedGroups).toBe(groups);
        expect(status.longtail).toEqual({ groups: 0, settlingGroups: 0 });
        const { submitted, trained, failed, dropped } = status.requests;
        expect(trained + failed + dropped).toBe(submitted);
        for (const groupId of world.intended) expect(world.trained.has(groupId), `${groupId} trained`).toBe(false);
        expect(status.droppedGroups).toBeGreaterThanOrEqual(world.intended.size);
        expect(await rounds.due(world.pool)).toMatchObject({ aborts: [], aborting: 0 });
        for (const abortId of world.abortIds) {
          const results = await world.resultsOf(abortId);
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
