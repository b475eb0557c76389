// Runs the tests and counts them.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { root } from './prepare.mjs';

const MAX_REASON_CHARACTERS = 160;

/** Runs vitest and prints `N passed, N failed, N skipped`. Returns its exit status. */
export function runTests(args, options) {
  return testOutcomes(args, options).status;
}

/**
 * Runs vitest. Prints a line for each failure, a line for each file with skipped tests, and last `N passed, N failed,
 * N skipped`. Returns its exit status and the outcomes of outcome-reporter.mjs, which are undefined if the run broke off.
 */
export function testOutcomes(args, { environment = {}, describe = () => {} } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-test-'));
  const file = join(folder, 'outcomes.json');
  const reporters = ['--reporter=default', `--reporter=${join(root, 'scripts', 'outcome-reporter.mjs')}`];
  const vitest = spawnSync(
    process.execPath,
    [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', ...args, ...reporters],
    { cwd: root, stdio: 'inherit', env: { ...process.env, ...environment, TEST_OUTCOME: file } },
  );
  // A run that broke off (a setup that failed, out of memory) leaves no outcomes.
  const outcomes = existsSync(file) ? readOutcomes(file, args) : undefined;
  rmSync(folder, { recursive: true });
  if (outcomes === undefined) {
    const end = vitest.signal ?? `status ${vitest.status}`;
    console.error(`The test run ended before the tests could be counted (${end})`);
  } else {
    describe(outcomes);
    for (const failure of outcomes.filter(({ state }) => state === 'failed')) console.log(formatFailure(failure));
    for (const line of skipLines(outcomes)) console.log(line);
    printCounts(outcomes);
  }
  return { status: vitest.status ?? 1, outcomes };
}

/** The outcomes of a run, without the tests that `-t` does not choose. */
function readOutcomes(file, args) {
  const outcomes = JSON.parse(readFileSync(file, 'utf8'));
  const isPart = args.some((arg) => /^(-t|--testNamePattern)/.test(arg));
  return outcomes.filter(({ state, reason }) => !isPart || state !== 'skipped' || reason !== undefined);
}

/** The last line of each test command. */
export function printCounts(outcomes) {
  const count = (wanted) => outcomes.filter(({ state }) => state === wanted).length;
  console.log(`${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`);
}

function formatFailure({ file, title, reason = '' }) {
  return `Failed: ${file} > ${title}: ${firstLine(reason)}`;
}

/** One line for the skipped tests of a file that have the same reason. */
function skipLines(outcomes) {
  const counts = new Map();
  for (const { file, state, reason } of outcomes) {
    const text = reason === undefined ? file : `${file}: ${firstLine(reason)}`;
    if (state === 'skipped') counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => `Skipped: ${count} of ${text}`);
}

function firstLine(text) {
  return stripVTControlCharacters(text).split('\n')[0].slice(0, MAX_REASON_CHARACTERS);
}
