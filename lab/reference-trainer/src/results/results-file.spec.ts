import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { ResultLine } from './result-line';
import { ResultsFile } from './results-file';

const folder = mkdtempSync(join(tmpdir(), 'broomwagon-results-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
let path: string;
/** Prototype of file handles, which has the methods of all open files. */
let fileHandles: FileHandle;
beforeAll(async () => {
  const file = await open(folder);
  fileHandles = Object.getPrototypeOf(file) as FileHandle;
  await file.close();
});
beforeEach(() => {
  path = join(folder, `${files++}.jsonl`);
});

const line = (promptId: string, sampleIndex: number): ResultLine => ({
  promptId,
  sampleIndex,
  roundId: 'r',
  finishReason: 'stop',
  weightVersions: [0, 0],
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

it('continues after the steps in the file', async () => {
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

it('removes results of a step whose trainer died', async () => {
  await writeFirst();
  appendFileSync(path, `${JSON.stringify(line('p2', 0))}\n{"promptId":`);
  appendFileSync(`${path}.steps`, '{"step":2,"by');
  const file = await ResultsFile.resume(path);
  expect(file.held).toEqual([held]);
  await file.writeRound({ step: 2 }, [line('p3', 0)]);
  await file.close();
  expect(linesIn()).toEqual([...first, line('p3', 0)]);
});

it('does not hold a step with missing results', async () => {
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

it('refuses results without a record, and leaves them as they are', async () => {
  await writeFirst();
  rmSync(`${path}.steps`);
  await expect(ResultsFile.resume(path)).rejects.toThrow(`${path}.steps, the record of their steps, is missing`);
  expect(linesIn()).toEqual(first);
});

it('keeps its steps when the trainer dies while it continues', async () => {
  await writeFirst();
  appendFileSync(path, '{"promptId":');
  appendFileSync(`${path}.steps`, '{"step":2,"by');
  const truncate = vi.spyOn(fileHandles, 'truncate').mockRejectedValue(new Error('killed'));
  await expect(ResultsFile.resume(path)).rejects.toThrow('killed');
  truncate.mockRestore();
  const write = vi.spyOn(fileHandles, 'write').mockRejectedValue(new Error('killed'));
  await ResultsFile.resume(path).then(
    (file) => file.close(),
    () => undefined,
  );
  write.mockRestore();
  const file = await ResultsFile.resume(path);
  expect(file.held).toEqual([held]);
  await file.close();
  expect(linesIn()).toEqual(first);
});

it('writes all, also where a write takes only a part', async () => {
  const whole = fileHandles.write as (...given: unknown[]) => Promise<{ bytesWritten: number }>;
  const write = vi.spyOn(fileHandles, 'write').mockImplementation(function (this: FileHandle, ...given: unknown[]) {
    const [data, offset, length, position] = given as [Buffer | string, number, number, number];
    if (typeof data === 'string') return whole.call(this, data.slice(0, 10), offset);
    return whole.call(this, data, offset, Math.min(length, 10), position);
  } as never);
  await writeFirst();
  write.mockRestore();
  expect(linesIn()).toEqual(first);
  const file = await ResultsFile.resume(path);
  expect(file.held).toEqual([held]);
  await file.close();
});

it('writes a step again that could not be written as a whole', async () => {
  const file = await ResultsFile.create(path);
  const whole = fileHandles.write as (...given: unknown[]) => Promise<{ bytesWritten: number }>;
  let writes = 0;
  const write = vi.spyOn(fileHandles, 'write').mockImplementation(function (this: FileHandle, ...given: unknown[]) {
    writes += 1;
    if (writes === 2) return Promise.reject(new Error('ENOSPC'));
    return whole.call(this, ...given);
  } as never);
  await expect(file.writeRound({ step: 1 }, first)).rejects.toThrow('ENOSPC');
  write.mockRestore();
  await file.writeRound({ step: 1 }, first);
  await file.close();
  expect(linesIn()).toEqual(first);
});
