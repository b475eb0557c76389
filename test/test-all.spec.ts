import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

const SCRIPTS = ['test-all', 'prepare', 'table', 'file-lock'];
/** Suites by name: the lines that each prints, and its exit status. */
const SUITES: Record<string, [lines: string[], status: number]> = {
  green: [['3 passed, 0 failed, 0 skipped'], 0],
  partly: [['Skipped: 2 of b.spec.ts: there is no browser', '3 passed, 0 failed, 2 skipped'], 0],
  skipped: [['Skipped: tests of Python: there is no Python 3.10', '0 passed, 0 failed, 4 skipped'], 0],
  red: [['Failed: a > one: wrong', 'Failed: a > two: wrong', '1 passed, 2 failed, 0 skipped'], 1],
  absent: [['To build it: make', 'Not run: there is no valkey-server'], 2],
  broken: [['cannot find module'], 1],
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'broomwagon-suites-'));
  mkdirSync(join(folder, 'scripts'));
  for (const name of SCRIPTS) cpSync(`scripts/${name}.mjs`, join(folder, 'scripts', `${name}.mjs`));
  const suites = Object.keys(SUITES).map((name) => ({ name, script: `test:${name}`, paths: [] }));
  const source = `export const SUITES = ${JSON.stringify(suites)};\nexport const concernedSuites = () => SUITES;\n`;
  writeFileSync(join(folder, 'scripts', 'suites.mjs'), source);
  const scripts: Record<string, string> = {};
  for (const [name, [lines, status]] of Object.entries(SUITES)) {
    const program = `console.log(${JSON.stringify(lines.join('\n'))}); process.exitCode = ${status};`;
    writeFileSync(join(folder, `${name}.mjs`), program);
    scripts[`test:${name}`] = `node ${name}.mjs`;
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ scripts }));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs `npm run test:all` with these suites, and returns its exit status and the cells of its table without minutes. */
function runAll(...names: string[]) {
  const script = join(folder, 'scripts', 'test-all.mjs');
  const { status, stdout } = spawnSync(process.execPath, [script, ...names], { encoding: 'utf8' });
  const rows = stdout.split('\n').filter((line) => line.startsWith('| '));
  const cells = rows.map((row) => row.split('|').map((cell) => cell.trim()));
  return { status, table: cells.slice(1).map((row) => [...row.slice(1, 6), row[7]].join(' | ')), stdout };
}

it('runs all suites and ends in one table: counts, and why tests failed, were skipped or cannot run', () => {
  const { status, table, stdout } = runAll();
  expect(table).toEqual([
    'green | passed | 3 | 0 | 0 | ',
    'partly | passed | 3 | 0 | 2 | 2 of b.spec.ts: there is no browser',
    'skipped | not run | 0 | 0 | 4 | tests of Python: there is no Python 3.10',
    'red | failed | 1 | 2 | 0 | a > one: wrong (and 1 more)',
    'absent | not run | - | - | - | there is no valkey-server',
    'broken | failed | - | - | - | cannot find module',
  ]);
  expect(stdout.trim().split('\n').at(-1)).toMatch(/^\| broken /);
  expect(status).toBe(1);
});

it('ends with status 0 if each named suite passes or cannot run here, and refuses unknown names', () => {
  const { status, table } = runAll('green', 'absent');
  expect(table.map((row) => row.split(' ', 1)[0])).toEqual(['green', 'absent']);
  expect(status).toBe(0);
  expect(runAll('unknown').status).toBe(2);
});
