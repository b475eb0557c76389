import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { MeasuredRun } from './compare-auto';
import { KeptRuns } from './kept-runs';

const folder = mkdtempSync(join(tmpdir(), 'kept-runs-'));
afterAll(() => rmSync(folder, { recursive: true }));

const measured = (lateSeconds: number): MeasuredRun => ({
  lateSeconds,
  versionSpan: 0,
  offPolicyShare: 0,
  wasteShare: 0,
  lengthBias: 1,
  ledgerBias: 1,
});
const notAgain = (): MeasuredRun => {
  throw new Error('measured again');
};

it('keeps runs, and measures a run again whose line is incomplete', () => {
  const file = join(folder, 'runs.jsonl');
  const first = new KeptRuns(file);
  first.once({ seed: 1 }, () => measured(1));
  first.once({ seed: 2 }, () => measured(2));
  writeFileSync(file, readFileSync(file, 'utf8').slice(0, -5));
  const second = new KeptRuns(file);
  expect(second.once({ seed: 1 }, notAgain)).toEqual(measured(1));
  expect(second.once({ seed: 2 }, () => measured(3))).toEqual(measured(3));
  const third = new KeptRuns(file);
  expect([1, 2].map((seed) => third.once({ seed }, notAgain).lateSeconds)).toEqual([1, 3]);
});
