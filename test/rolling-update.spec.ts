import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dataSet, findFaults } from './system/data-set';
import { TestSystem } from './system/test-system';

const APPS = ['load-balancer', 'trainer-coordinator'];
const PROMPTS = dataSet(8, 4);
const GROUPS_PER_STEP = 4;
const JOBS_TIMEOUT_MS = 60_000;
const releases: string[] = [];
let system: TestSystem;

/** The built code with another schema version, in a folder where it finds its packages. */
function createRelease(schemaVersion: number): string {
  const folder = join('dist', `.release-${process.pid}-${schemaVersion}`);
  releases.push(folder);
  for (const part of ['apps', 'libs']) cpSync(join('dist', part), join(folder, part), { recursive: true });
  const file = join(folder, 'libs', 'state', 'src', 'library', 'schema-version.js');
  const code = readFileSync(file, 'utf8');
  const changed = code.replace(/SCHEMA_VERSION = \d+;/, `SCHEMA_VERSION = ${schemaVersion};`);
  expect(changed).not.toBe(code);
  writeFileSync(file, changed);
  return folder;
}

beforeAll(async () => {
  system = await TestSystem.start({ workers: 2, prompts: PROMPTS, speed: 200 });
});
afterAll(async () => {
  await system?.stop();
  for (const folder of releases) rmSync(folder, { recursive: true, force: true });
});

const startAll = (replica: number, release?: string) =>
  Promise.all(APPS.map((app) => system.startApp(app, `${app}-${replica}`, {}, undefined, release)));

it('jobs are trained exactly once while replicas are updated and set back under load', async () => {
  const next = createRelease(2);
  const load = { isOn: true, jobs: 0 };
  const train = async () => {
    while (load.isOn) {
      const job = `job-${load.jobs}`;
      const { lines } = await system.train(job, PROMPTS, { groupsPerStep: GROUPS_PER_STEP, policy: 'resume' });
      expect(findFaults(job, PROMPTS, lines)).toEqual([]);
      load.jobs++;
    }
  };
  const training = train();
  // Waits for two more jobs: the first may have started before the latest change, the second starts after it.
  const moreJobs = () => {
    const wanted = load.jobs + 2;
    return expect.poll(() => load.jobs, { timeout: JOBS_TIMEOUT_MS }).toBeGreaterThanOrEqual(wanted);
  };
  const update = async () => {
    await moreJobs();
    expect(await system.redis.hash('meta')).toMatchObject({ schemaVersion: '1' });

    await startAll(2, next);
    expect(await system.redis.hash('meta')).toMatchObject({ schemaVersion: '2' });
    await moreJobs();
    await Promise.all(APPS.map((app) => system.process(`${app}-1`).stop()));
    await moreJobs();

    // A replica two releases ahead of the others refuses to start, with this reason, and the others go on.
    const tooNew = system.startApp('load-balancer', 'load-balancer-3', {}, undefined, createRelease(4));
    await expect(tooNew).rejects.toThrow(/Live replicas cannot read pools of schema 4.*\(schema 2\)/s);

    // Back to the release before, which reads schema 2.
    await startAll(1);
    await Promise.all(APPS.map((app) => system.process(`${app}-2`).stop()));
    await moreJobs();
  };
  await Promise.race([update(), training]).finally(() => (load.isOn = false));
  await training;
  await system.expectAtRest();
  expect(await system.redis.hash('meta')).toMatchObject({ schemaVersion: '2' });
});
