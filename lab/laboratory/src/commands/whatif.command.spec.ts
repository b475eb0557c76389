import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, type MockInstance, vi } from 'vitest';
import { whatifCommand } from './whatif.command';

const JOB = 'job';
let folder: string;
let said: MockInstance;

/** Events of one round of one group of two samples. */
const EVENTS = [
  { type: 'round.opened', atMs: 0, job: JOB, roundId: 'r', step: 1, kind: 'short', neededGroups: 1, newGroups: 1 },
  { type: 'request.finished', atMs: 1_000, requestId: `${JOB}/g/0`, roundId: 'r', tokens: 100, finishReason: 'stop' },
  { type: 'request.finished', atMs: 2_000, requestId: `${JOB}/g/1`, roundId: 'r', tokens: 200, finishReason: 'stop' },
  { type: 'round.completed', atMs: 2_000, job: JOB, roundId: 'r', step: 1, reason: 'accepted' },
].map((event, sequence) => JSON.stringify({ pool: 'p', sequence, takeGroups: 0, policy: 'wait', ...event }));

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'broomwagon-whatif-'));
  writeFileSync(join(folder, 'events'), EVENTS.join('\n'));
});
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(() => {
  said = vi.spyOn(console, 'log').mockReturnValue();
});
afterEach(() => said.mockRestore());

async function whatif(fields: object, ...more: string[]): Promise<unknown> {
  const program = new Command();
  whatifCommand(program);
  const options = ['--events', join(folder, 'events'), '--out', folder, '--set', JSON.stringify(fields), ...more];
  return program.parseAsync(['whatif', ...options], { from: 'user' });
}

it.each([
  ['maxCuts', 'two'],
  ['maxCuts', -1],
  ['maxReturns', 1.5],
  ['maxcuts', 1],
  ['concurrency', 8],
])('refuses a wrong field of --set with its name: %s %s', async (field, value) => {
  await expect(whatif({ [field]: value })).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field });
  expect(readdirSync(folder)).toEqual(['events']);
});

it.each([
  [{ onCut: 'keep' }, 'auto', 'onCut: is chosen by the policy auto (policy auto)'],
  [{ maxWaste: 0.1 }, 'wait', 'maxWaste: is only for the policy auto (policy wait)'],
  [{ overProvision: 1.5 }, 'resume', 'overProvision: is given by --over-provision, not by --set'],
  [{ name: 'drip' }, 'resume', 'name: is given by --policy, not by --set'],
])('refuses fields that contradict the policy, before it replays anything: %o %s', async (fields, policy, message) => {
  const [field] = Object.keys(fields);
  await expect(whatif(fields, '--policy', policy)).rejects.toMatchObject({
    code: 'VALIDATION_FAILED',
    field,
    message,
  });
  expect(said).not.toHaveBeenCalled();
});

it('replays the events under the policies with the fields of --set', async () => {
  await whatif({ maxCuts: 1 });
  expect(readdirSync(folder)).toContain('whatif.svg');
});
