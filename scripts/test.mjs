// `npm test`: set-up, build, linters, types, generated files, then every test. Ends with `N passed, N failed, N skipped`.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, install, requireNode, root, run } from './prepare.mjs';

requireNode();
install();
build();
for (const script of ['lint', 'types', 'schema:check']) run('npm', ['run', '--silent', script]);

const folder = mkdtempSync(join(tmpdir(), 'broomwagon-test-'));
const report = join(folder, 'report.json');
const vitest = spawnSync(
  process.execPath,
  [
    join(root, 'node_modules', 'vitest', 'vitest.mjs'),
    'run',
    ...process.argv.slice(2),
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
  ],
  { cwd: root, stdio: 'inherit' },
);
// A run that broke off (a setup that failed, out of memory) leaves no report.
if (existsSync(report)) {
  const result = JSON.parse(readFileSync(report, 'utf8'));
  const skipped = result.numPendingTests + result.numTodoTests;
  console.log(`${result.numPassedTests} passed, ${result.numFailedTests} failed, ${skipped} skipped`);
} else {
  console.error(`The tests broke off before they could be counted (${vitest.signal ?? `status ${vitest.status}`})`);
}
rmSync(folder, { recursive: true });
process.exit(vitest.status ?? 1);
