import type { TailPolicy } from '@broomwagon/contracts';
import { afterAll, describe, expect, it } from 'vitest';
import { endWorlds, JOB, rounds } from '../rounds/data-set-world.fixture';
import { forDataSets, runDataSet, WEIGHTS } from '../rounds/run-data-set.fixture';
import { SnapshotWorld } from './snapshot-world.fixture';

afterAll(endWorlds);

describe('a data set whose trainer falls back to snapshots', () => {
  it('is restored exactly, and then trains every group exactly once in ceil(N/G) steps', async () => {
    let restores = 0;
    await forDataSets(async ({ groups, samples, groupsPerStep, name, decide }) => {
      const policy: TailPolicy = { name, overProvision: 1.5 };
      const world = new SnapshotWorld(groups, samples, groupsPerStep, policy, decide);
      const act = () => {
        const choice = decide(6);
        if (choice < 2 && world.restores < 5) return world.restore();
        return choice === 2 ? world.cancel('requeue') : world.save();
      };
      await runDataSet(world, decide, WEIGHTS, { weight: 2, act });
      expect(world.trained.size).toBe(groups);
      expect(world.steps).toBe(Math.ceil(groups / groupsPerStep));
      const { requests, longtail } = await rounds.jobStatus(world.pool, { job: JOB });
      expect(requests).toMatchObject({ submitted: groups * samples, trained: groups * samples, dropped: 0 });
      expect(longtail).toEqual({ groups: 0, settlingGroups: 0 });
      restores += world.restores;
      await world.end();
    });
    expect(restores).toBeGreaterThan(0);
  });
});
