import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dataSet, faultsOf } from './system/data-set';
import { TestSystem } from './system/test-system';

const PROMPTS = dataSet(10, 2);
const folder = mkdtempSync(join(tmpdir(), 'broomwagon-lost-'));
let system: TestSystem;
beforeAll(async () => {
  const environment = { PAYLOAD_DRIVER: 'file', PAYLOAD_DIR: folder };
  system = await TestSystem.start({ workers: 1, prompts: PROMPTS, speed: 80, environment });
});
afterAll(async () => {
  await system?.stop();
  rmSync(folder, { recursive: true });
});

it('trains all samples when the payload store loses all that it has, accepted samples too', async () => {
  let losses = 0;
  const { lines } = await system.train('job', PROMPTS, {
    groupsPerStep: 5,
    policy: 'resume',
    onStatus: ({ acceptedGroups, state }) => {
      if (losses > 0 || acceptedGroups < 2 || state !== 'open') return;
      losses += 1;
      const jobFolder = join(folder, system.pool, 'job');
      for (const name of readdirSync(jobFolder)) {
        if (!name.startsWith('.')) rmSync(join(jobFolder, name), { recursive: true, force: true });
      }
    },
  });
  expect(losses).toBe(1);
  expect(faultsOf('job', PROMPTS, lines)).toEqual([]);
  const { requests } = await system.call('job.status', { job: 'job' });
  expect(requests.dropped).toBeGreaterThan(0);
  await system.expectAtRest();
});
