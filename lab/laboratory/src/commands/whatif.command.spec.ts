import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { whatifCommand } from './whatif.command';

const JOB = 'job';
let folder: string;

/** One round of one group of two samples. */
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

async function whatif(fields: object): Promise<unknown> {
  const said = vi.spyOn(console, 'log').mockReturnValue();
  const program = new Command();
  whatifCommand(program);
  const options = ['--events', join(folder, 'events'), '--out', folder, '--set', JSON.stringify(fields)];
  try {
    return await program.parseAsync(['whatif', ...options], { from: 'user' });
  } finally {
    said.mockRestore();
  }
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

it('replays the events under the policies with the fields of --set', async () => {
  await whatif({ maxCuts: 1 });
  expect(readdirSync(folder)).toContain('whatif.svg');
});
