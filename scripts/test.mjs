// `npm test`: set-up, build, linters, types, generated files, then every test. Ends with `N passed, N failed, N skipped`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
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
const result = JSON.parse(readFileSync(report, 'utf8'));
rmSync(folder, { recursive: true });
const skipped = result.numPendingTests + result.numTodoTests;
console.log(`${result.numPassedTests} passed, ${result.numFailedTests} failed, ${skipped} skipped`);
process.exit(vitest.status ?? 1);
