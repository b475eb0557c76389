import { afterAll, beforeAll, expect, it } from 'vitest';
import { dataSet, findFaults } from './system/data-set';
import { TestSystem } from './system/test-system';

const GROUPS_PER_STEP = 4;
const PROMPTS = dataSet(14, 4);

let system: TestSystem;
beforeAll(async () => {
  system = await TestSystem.start({ workers: 1, prompts: PROMPTS, speed: 80 });
});
afterAll(() => system?.stop());

it('trains all samples once when an operator cancels rounds, running and completed ones', async () => {
  const cancelled = new Set<string>();
  let asked: Promise<unknown> = Promise.resolve();
  const { lines, steps } = await system.train('job', PROMPTS, {
    groupsPerStep: GROUPS_PER_STEP,
    policy: 'resume',
    onStatus: ({ roundId, step, state, roundGroups, trainerEpoch }) => {
      // Cancels the first round of each step but the last: in the second step once it is completed, else while it runs.
      const isDue = step === 2 ? state === 'completed' : roundGroups > 0;
      if (!isDue || step > 3 || roundId !== `job-step-${step}`) return;
      cancelled.add(roundId);
      asked = asked.then(() => system.call('round.cancel', { job: 'job', roundId, trainerEpoch, mode: 'requeue' }));
    },
  });
  await asked;
  expect([...cancelled]).toEqual(['job-step-1', 'job-step-2', 'job-step-3']);
  expect(findFaults('job', PROMPTS, lines)).toEqual([]);
  expect(steps.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
  await system.expectAtRest();
});
