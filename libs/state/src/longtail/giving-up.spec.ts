import type { TailPolicy } from '@broomwagon/contracts';
import { afterAll, describe, expect, it } from 'vitest';
import { endWorlds, JOB, rounds } from '../rounds/data-set-world.fixture';
import { forDataSets, runDataSet, WEIGHTS } from '../rounds/run-data-set.fixture';
import { GivingUpWorld } from './giving-up-world.fixture';

afterAll(endWorlds);

describe('a data set whose samples are handed in unfinished and whose rounds are given up', () => {
  it('is trained exactly once in ceil(N/G) steps when everything given up is requeued', async () => {
    let [requeues, cancels] = [0, 0];
    await forDataSets(async ({ groups, samples, groupsPerStep, name, decide }) => {
      const policy: TailPolicy = { name, overProvision: 1.5 };
      const world = new GivingUpWorld(groups, samples, groupsPerStep, policy, decide);
      const giveUp = async () => (decide(5) === 0 ? world.cancel('requeue') : world.handIn());
      await runDataSet(world, decide, WEIGHTS, { weight: 1, act: giveUp });
      expect(world.trained.size).toBe(groups);
      expect(world.steps).toBe(Math.ceil(groups / groupsPerStep));
      const { requests, longtail, droppedGroups } = await rounds.jobStatus(world.pool, { job: JOB });
      expect(requests).toMatchObject({ submitted: groups * samples, trained: groups * samples });
      expect({ longtail, droppedGroups }).toEqual({ longtail: { groups: 0, settlingGroups: 0 }, droppedGroups: 0 });
      requeues += world.requeues;
      cancels += world.cancels;
      await world.end();
    });
    expect(Math.min(requeues, cancels)).toBeGreaterThan(0);
  });

  it('ends every group exactly once, trained or dropped, when rounds are dropped', async () => {
    await forDataSets(async ({ groups, samples, groupsPerStep, name, decide }) => {
      const policy: TailPolicy = { name, overProvision: 1.5 };
      const world = new GivingUpWorld(groups, samples, groupsPerStep, policy, decide);
      const giveUp = () => world.cancel(decide(2) === 0 ? 'drop' : 'requeue');
      await runDataSet(world, decide, WEIGHTS, { weight: 1, act: giveUp });
      await world.stopWorkers();
      for (let page = 0; page < 20; page++) await world.sweep();
      const { requests, longtail, ...status } = await rounds.jobStatus(world.pool, { job: JOB });
      expect(longtail).toEqual({ groups: 0, settlingGroups: 0 });
      expect(status.trainedGroups).toBe(world.trained.size);
      expect(status.trainedGroups + status.droppedGroups).toBe(groups);
      expect(requests.trained + requests.dropped).toBe(groups * samples);
      await world.end();
    });
  });
});
