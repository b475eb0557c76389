import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, it } from 'vitest';
import type { ResultLine } from './result-line';
import { ResultsFile } from './results-file';

const folder = mkdtempSync(join(tmpdir(), 'broomwagon-results-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
let path: string;
beforeEach(() => {
  path = join(folder, `${files++}.jsonl`);
});

const line = (promptId: string, sampleIndex: number): ResultLine => ({
  promptId,
  sampleIndex,
  roundId: 'r',
  finishReason: 'stop',
  segments: [],
});
const first = [line('p0', 0), line('p0', 1), line('p1', 0)];
const held = {
  step: 1,
  groups: [
    { groupId: 'p0', samples: 2 },
    { groupId: 'p1', samples: 1 },
  ],
};
const linesIn = () =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((text) => JSON.parse(text) as ResultLine);

async function writeFirst(): Promise<void> {
  const file = await ResultsFile.create(path);
  expect(file.held).toEqual([]);
  await file.writeRound({ step: 1 }, first);
  await file.close();
}

it('goes on behind the steps that it holds', async () => {
  await writeFirst();
  const file = await ResultsFile.resume(path);
  expect(file.held).toEqual([held]);
  await file.writeRound({ step: 3 }, [line('p2', 0)]);
  await file.close();
  expect(linesIn()).toEqual([...first, line('p2', 0)]);
  const again = await ResultsFile.resume(path);
  expect(again.held).toEqual([held, { step: 3, groups: [{ groupId: 'p2', samples: 1 }] }]);
  await again.close();
});

it('removes what was written of a step whose trainer died', async () => {
  await writeFirst();
  appendFileSync(path, `${JSON.stringify(line('p2', 0))}\n{"promptId":`);
  appendFileSync(`${path}.steps`, '{"step":2,"by');
  const file = await ResultsFile.resume(path);
  expect(file.held).toEqual([held]);
  await file.writeRound({ step: 2 }, [line('p3', 0)]);
  await file.close();
  expect(linesIn()).toEqual([...first, line('p3', 0)]);
});

it('does not hold a step of which results are gone', async () => {
  await writeFirst();
  truncateSync(path, 10);
  const file = await ResultsFile.resume(path);
  expect(file.held).toEqual([]);
  await file.close();
  expect(readFileSync(path, 'utf8')).toBe('');
});

it('holds nothing when there is no file yet', async () => {
  const file = await ResultsFile.resume(path);
  expect(file.held).toEqual([]);
  await file.writeRound({ step: 1 }, first);
  await file.close();
  expect(linesIn()).toEqual(first);
});
