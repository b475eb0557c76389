import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { dataSet, findFaults, type TestPrompt } from './system/data-set';
import { toApp, failpointNames, Provocations } from './system/provocations';
import { TestSystem } from './system/test-system';

/** Chance decides which replica gets a call, so a data set may pass without a visit to the failpoint. */
const MAX_DATA_SETS = 12;
/** A data set for a failpoint between pages: opening a long round of it takes two pages of 128 requests. */
const WIDE = dataSet(12, 48, 29);
const SMALL = WIDE.map((prompt) => ({ ...prompt, samples: 4 }));
const GROUPS_PER_STEP = 4;
/** Chooses every third failpoint, to save time; all in `npm run test:faults`. */
const isChosen = (_: string, index: number): boolean => process.env.SET_BACK === 'all' || index % 3 === 0;
/** Freed payloads are removed while the test runs. */
const SETTINGS = { CONCURRENCY: '400', PAYLOAD_DELETE_AFTER_MS: '1000', REDIS_LOSS_WINDOW_MS: '1000' };

describe('a replica killed at a failpoint, beside another one', () => {
  let system: TestSystem;
  let dataSets = 0;
  beforeAll(async () => {
    system = await TestSystem.start({ workers: 1, prompts: WIDE, environment: SETTINGS });
  });
  afterEach(() => system.expectAtRest());
  afterAll(() => system?.stop());

  async function trainWhole(prompts: readonly TestPrompt[]): Promise<void> {
    const job = `job-${++dataSets}`;
    const { lines, steps } = await system.train(job, prompts, { groupsPerStep: GROUPS_PER_STEP, policy: 'resume' });
    expect(findFaults(job, prompts, lines)).toEqual([]);
    expect(steps).toHaveLength(Math.ceil(prompts.length / GROUPS_PER_STEP));
  }

  it.each(failpointNames().filter(isChosen))('loses nothing and does nothing twice: %s', async (name) => {
    const app = toApp(name);
    // Pages are few, so the first visit counts. All other failpoints are visited often, first without load.
    const atHit = name.endsWith('between-pages') ? 1 : 3;
    const prompts = name.startsWith('coordinator.open') ? WIDE : SMALL;
    const victim = await system.startApp(app, `${app}-failing`, { FAILPOINTS: `${name}=kill@${atHit}` });
    try {
      for (let tries = 0; victim.running && tries < MAX_DATA_SETS; tries += 1) {
        await Promise.all([trainWhole(prompts), new Provocations(system, `${dataSets}`).provoke(name)]);
      }
      const advice = `training and the calls of test/system/provocations.ts never reach ${name}`;
      expect(victim.lastExit, victim.running ? advice : undefined).toEqual({ code: null, signal: 'SIGKILL' });
    } finally {
      await victim.stop();
    }
  });
});
