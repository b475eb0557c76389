import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { killAtRandom } from './system/chaos';
import { dataSet, faultsOf } from './system/data-set';
import { TestSystem } from './system/test-system';

const GROUPS_PER_STEP = 8;
const PROMPTS = dataSet(28, 4);

describe('a whole data set while processes are killed at random', () => {
  let system: TestSystem;
  beforeAll(async () => {
    system = await TestSystem.start({ balancers: 2, coordinators: 2, workers: 2, prompts: PROMPTS, speed: 80 });
  });
  afterEach(() => system.expectAtRest());
  afterAll(() => system?.stop());

  it.each(['resume', 'regenerate', 'wait'] as const)('is trained exactly once, token by token: %s', async (policy) => {
    const job = `job-${policy}`;
    const seed = inject('seed');
    // Two at a time may be down, also both replicas of an application.
    const chaos = [1, 2].map((replica) => {
      const names = ['load-balancer', 'trainer-coordinator', 'worker'].map((app) => `${app}-${replica}`);
      return killAtRandom(system, names, seed + replica);
    });
    let kills = 0;
    let trained;
    try {
      trained = await system.train(job, PROMPTS, { groupsPerStep: GROUPS_PER_STEP, policy });
    } finally {
      for (const one of chaos) kills += await one.stop();
    }
    expect(faultsOf(job, PROMPTS, trained.lines), `seed ${seed}`).toEqual([]);
    expect(trained.steps).toHaveLength(Math.ceil(PROMPTS.length / GROUPS_PER_STEP));
    // How many there are in that time depends on how fast the processes start again.
    expect(kills).toBeGreaterThan(0);
    if (policy !== 'wait') expect(trained.steps.some(({ requestsCut }) => requestsCut > 0)).toBe(true);
  });
});
