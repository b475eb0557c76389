// Runs the tests and counts them.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './prepare.mjs';

/** Runs vitest and prints `N passed, N failed, N skipped`. Returns its exit status. */
export function runTests(args, { environment = {}, describe = () => {} } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-test-'));
  const file = join(folder, 'report.json');
  const vitest = spawnSync(
    process.execPath,
    [
      join(root, 'node_modules', 'vitest', 'vitest.mjs'),
      'run',
      ...args,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${file}`,
    ],
    { cwd: root, stdio: 'inherit', env: { ...process.env, ...environment } },
  );
  // A run that broke off (a setup that failed, out of memory) leaves no report.
  if (existsSync(file)) {
    const report = JSON.parse(readFileSync(file, 'utf8'));
    describe(report);
    const skipped = report.numPendingTests + report.numTodoTests;
    console.log(`${report.numPassedTests} passed, ${report.numFailedTests} failed, ${skipped} skipped`);
  } else {
    console.error(
      `The test run ended before the tests could be counted (${vitest.signal ?? `status ${vitest.status}`})`,
    );
  }
  rmSync(folder, { recursive: true });
  return vitest.status ?? 1;
}
