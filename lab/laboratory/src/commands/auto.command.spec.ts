import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { SETUPS } from '../parameters';
import { autoCommand } from './auto.command';
import { documentedCalls, documentedRows, printed, parseRows } from './commands.fixture';

const folder = mkdtempSync(join(tmpdir(), 'broomwagon-auto-'));
const file = join(folder, 'runs.jsonl');
afterAll(() => rmSync(folder, { recursive: true }));

const TINY = '--setup april --steps 12 --seeds 1 --scale 0.1 --over-provisions 2'.split(' ');

it('continues from a file of runs, takes its runs from there, and prints the same', async () => {
  const first = await printed(autoCommand, ...TINY, '--runs', file);
  expect(parseRows(first).map(([setup]) => setup)).toEqual(['april']);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  // One line each for `auto`, `wait` and three policies.
  expect(lines).toHaveLength(5);

  const kept = lines.slice(0, 3).map((line) => `${line}\n`);
  writeFileSync(file, kept.join(''));
  expect(await printed(autoCommand, ...TINY, '--runs', file)).toEqual(first);
  expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toEqual(lines);

  const [auto, ...others] = lines.map((line) => JSON.parse(line) as { measured: { lateSeconds: number } });
  auto!.measured.lateSeconds *= 2;
  writeFileSync(file, [auto, ...others].map((line) => `${JSON.stringify(line)}\n`).join(''));
  const parseRatio = (text: readonly string[]): number => Number(parseRows(text)[0]![5]);
  const slower = await printed(autoCommand, ...TINY, '--runs', file);
  expect(parseRatio(slower)).toBeCloseTo(parseRatio(first) / 2, 2);
  expect(parseRows(slower)[0]!.at(-1)).toBe('**no**');
});

it.each([
  ['--scale', '0'],
  ['--scale', '1.5'],
  ['--steps', '11'],
  ['--seeds', 'two'],
  ['--setup', 'nobody'],
  ['--over-provisions', '0.5'],
])('refuses a wrong option: %s %s', async (...option) => {
  await expect(printed(autoCommand, ...option)).rejects.toMatchObject({ code: 'commander.invalidArgument' });
});

it('has the options and the rows that its documentation names', () => {
  const named = documentedRows('setup').map((row) => row.split(',')[0]!);
  expect(named.length).toBeGreaterThan(15);
  const compared = documentedCalls(autoCommand).flatMap(({ setup }) => setup as string[]);
  expect(Object.keys(SETUPS)).toEqual(expect.arrayContaining(named));
  expect(compared).toEqual(expect.arrayContaining(named));
});
