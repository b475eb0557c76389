import type { GroupSubmission, TailPolicy } from '@broomwagon/contracts';
import { waitUntil } from '@broomwagon/testing';
import { AdminApi } from '../system/admin-api';
import { dataSet, SEED, type TestPrompt } from '../system/data-set';
import { TestSystem } from '../system/test-system';

/** Prompts whose samples are all short. */
const FINITE = dataSet(16, 2, 1_000);
/** Prompt whose samples run for longer than any test. */
const ENDLESS: TestPrompt = {
  id: 'endless',
  line: 100,
  prompt: { text: 'Count without an end.' },
  samples: 2,
  lengths: [120_000, 120_000],
};
const POLICY: TailPolicy = { name: 'resume', overProvision: 2 };

/** Pages with the jobs whose contents fill them, and the last element of each page that appears. */
export const CONTENTS: Record<string, { job: string; shown: string }> = {
  overview: { job: 'running', shown: 'td:has-text("trainer-coordinator")' },
  fleet: { job: 'running', shown: 'td:has-text("engine-0")' },
  round: { job: 'running', shown: 'td:has-text("running/one")' },
  tail: { job: 'cut', shown: 'td:has-text("endless")' },
  ledger: { job: 'trained', shown: '[role=img][aria-label^="Waste"]' },
  timeline: { job: 'trained', shown: 'canvas[data-bars]' },
  frontier: { job: 'trained', shown: 'svg[role=img]' },
  events: { job: 'running', shown: 'table' },
  decisions: { job: 'running', shown: 'button:has-text("Show")' },
  rebalance: { job: 'running', shown: 'button:has-text("Plan")' },
  changes: { job: 'running', shown: 'text=Redis was not restarted' },
  audit: { job: 'running', shown: '[role=region][aria-label^="Changes"]' },
  tokens: { job: 'running', shown: '[role=region][aria-label="Tokens"]' },
  runbooks: { job: 'running', shown: 'section[aria-label="BroomwagonNoReadyServer"]' },
};
/** A machine that is busy needs its time. */
const START_MS = 60_000;

/** A system with data for each page: the job `trained` has steps, `cut` a long-tail queue, `running` an open round. */
export async function startWithJobs(): Promise<{ system: TestSystem; api: AdminApi }> {
  const system = await TestSystem.start({ engines: 4, speed: 4, prompts: [...FINITE, ENDLESS] });
  const api = await AdminApi.start(system.keyPrefix);
  await system.train('trained', FINITE, { groupsPerStep: 8, policy: 'resume' });

  const finite = FINITE[1]!;
  const groups = [toSubmission('short', finite), toSubmission('endless', ENDLESS)];
  await system.openRound('cut', { groupsPerStep: 1, groups, policy: POLICY });
  await waitUntil(async () => (await system.call('job.status', { job: 'cut' })).longtail.groups === 1, {
    what: 'a group in the queue',
    timeoutMs: START_MS,
  });

  const running = [toSubmission('one', ENDLESS), toSubmission('two', ENDLESS)];
  await system.openRound('running', { groupsPerStep: 1, groups: running, policy: POLICY });
  await waitUntil(async () => (await system.call('job.status', { job: 'running' })).requests.running === 4, {
    what: 'four running requests',
    timeoutMs: START_MS,
  });
  return { system, api };
}

function toSubmission(groupId: string, { prompt, samples, lengths }: TestPrompt): GroupSubmission {
  return { groupId, samples, prompt, maxTokens: Math.max(...lengths), sampling: { seed: SEED } };
}
