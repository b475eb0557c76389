import { mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { examplePrompts, heldIn, startExampleTrainer } from './set-back/trainers';
import { dataSet, findFaults, SEED } from './system/data-set';
import { TestSystem } from './system/test-system';

const PROMPTS = dataSet(10, 2);
/** The last one is long, so that the last step lasts a second. */
const EXAMPLE = examplePrompts(10, 2).map((prompt, index, all) =>
  index === all.length - 1 ? { ...prompt, lengths: [5_000] } : prompt,
);
/** Longer than 32 kB: only the payload store has these prompts. */
const LARGE = dataSet(2, 2).map((prompt) => ({
  ...prompt,
  prompt: { text: prompt.prompt.text.padEnd(40_000, ' Think.') },
}));
/** Each sample takes more than a second. */
const AWAY = dataSet(3, 2).map((prompt, index) => ({
  ...prompt,
  id: `away-${index}`,
  prompt: { text: `Away ${index}` },
  lengths: [8_000, 8_000],
}));
const GROUPS_PER_STEP = 5;
const folder = mkdtempSync(join(tmpdir(), 'broomwagon-lost-'));
let system: TestSystem;
beforeAll(async () => {
  // A worker that claims no more is at debug: the outage of the folder is the line for operators.
  const settings = { TRANSITION_DEADLINE_MS: '1000', LOG_LEVEL: 'debug' };
  const environment = { PAYLOAD_DRIVER: 'file', PAYLOAD_DIR: folder, ...settings };
  system = await TestSystem.start({
    workers: 1,
    prompts: [...PROMPTS, ...EXAMPLE, ...LARGE, ...AWAY],
    speed: 80,
    environment,
  });
});
afterAll(async () => {
  await system?.stop();
  rmSync(folder, { recursive: true });
});

/** All payloads of the job; a worker may write to a folder that is just being removed. */
function loseAll(job: string): void {
  const jobFolder = join(folder, system.pool, job);
  for (const name of readdirSync(jobFolder)) {
    if (!name.startsWith('.')) rmSync(join(jobFolder, name), { recursive: true, force: true, maxRetries: 10 });
  }
}

it('trains all samples when the payload store loses all that it has, accepted samples too', async () => {
  let losses = 0;
  const { lines } = await system.train('job', PROMPTS, {
    groupsPerStep: GROUPS_PER_STEP,
    policy: 'resume',
    onStatus: ({ acceptedGroups, state }) => {
      if (losses > 0 || acceptedGroups < 2 || state !== 'open') return;
      losses += 1;
      loseAll('job');
    },
  });
  expect(losses).toBe(1);
  expect(findFaults('job', PROMPTS, lines)).toEqual([]);
  const { requests } = await system.call('job.status', { job: 'job' });
  expect(requests.dropped).toBeGreaterThan(0);
  await system.expectAtRest();
});

it('trains all samples when the payload folder is away for longer than a worker repeats its calls', async () => {
  const reasons = new Set<string>();
  const training = system.train('away', AWAY, {
    groupsPerStep: AWAY.length,
    policy: 'resume',
    overProvision: 1,
    onStatus: ({ blockedReason }) => void (blockedReason && reasons.add(blockedReason.code)),
  });
  await expect.poll(() => system.runningRequests()).not.toEqual([]);
  renameSync(folder, `${folder}-away`);
  // The worker logs this when a call of the store has failed until its deadline.
  await expect.poll(() => system.process('worker-1').logTail(1_000)).toContain('No request is claimed until');
  await expect.poll(() => [...reasons]).toContain('UNAVAILABLE');
  renameSync(`${folder}-away`, folder);
  const { lines } = await training;
  expect(findFaults('away', AWAY, lines)).toEqual([]);
  expect(await system.call('job.status', { job: 'away' })).toMatchObject({ failedGroups: 0, requests: { failed: 0 } });
  await system.expectAtRest();
});

it('ends the example trainer with an error that names its missing groups', async () => {
  const out = mkdtempSync(join(system.folder, 'example-'));
  const trainer = await startExampleTrainer(system, out, {
    job: 'example',
    prompts: EXAMPLE.length,
    samples: EXAMPLE[0]!.samples,
    groups: GROUPS_PER_STEP,
    'over-provision': 1,
    seed: SEED,
  });
  const round = async () => {
    const { openRoundId } = await system
      .call('job.status', { job: 'example' })
      .catch(() => ({ openRoundId: undefined }));
    return openRoundId && system.call('round.status', { job: 'example', roundId: openRoundId });
  };
  await expect.poll(round).toMatchObject({ roundId: 'step-2', roundGroups: GROUPS_PER_STEP });
  // The trainer does not hold the step that it is about to read.
  trainer.pause();
  await expect.poll(round).toMatchObject({ acceptedGroups: GROUPS_PER_STEP });
  loseAll('example');
  trainer.resume();
  expect((await trainer.exited).code).toBe(1);

  const held = heldIn(out);
  const ids = new Set(held.map(({ promptId }) => promptId));
  const missing = EXAMPLE.filter(({ id }) => !ids.has(id));
  expect(missing).toHaveLength(GROUPS_PER_STEP);
  expect(
    findFaults(
      'example',
      EXAMPLE.filter(({ id }) => ids.has(id)),
      held,
    ),
  ).toEqual([]);
  const log = await trainer.logTail(100);
  expect(log).toContain('payload.get: PAYLOAD_NOT_FOUND');
  expect(log).toContain(`Not trained: ${missing.map(({ id }) => id).join(' ')}`);
});

it('submits groups again whose prompts the payload store has lost', async () => {
  await system.call('pool.pause', {});
  const training = system.train('large', LARGE, { groupsPerStep: LARGE.length, policy: 'resume', overProvision: 1 });
  const submitted = () => system.call('job.status', { job: 'large' }).then(({ submittedGroups }) => submittedGroups);
  await expect.poll(() => submitted().catch(() => 0)).toBe(LARGE.length);
  loseAll('large');
  await system.call('pool.resume', {});
  const { lines } = await training;
  expect(findFaults('large', LARGE, lines)).toEqual([]);
  expect(await system.call('job.status', { job: 'large' })).toMatchObject({ failedGroups: LARGE.length });
});
