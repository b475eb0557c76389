// `npm run test:faults`: all fault tests, with every pair of conditions under which Redis may be set back. Prints a
// table and ends with `N passed, N failed, N skipped`. Takes about half an hour; `-- test/set-back/torn` runs a part.
import { relative } from 'node:path';
import { build, install, requireNode, root } from './prepare.mjs';
import { runTests } from './vitest.mjs';

const FILES = [
  'test/set-back',
  'test/exactly-once',
  'test/failpoints',
  'test/moves-under-chaos',
  'test/replicas-that-vanish',
  'test/rolling-update',
  'test/servers-that-restart',
  'test/stops-in-any-order',
  'test/workers-that-vanish',
];

function printTable({ testResults }) {
  for (const { name, assertionResults } of testResults) {
    console.log(`\n${relative(root, name)}`);
    for (const { status, title, duration = 0, meta = {} } of assertionResults) {
      const seconds = (duration / 1_000).toFixed(1).padStart(6);
      console.log(`  ${status.padEnd(7)} ${seconds} s  ${title}${meta.outcome ? ` -> ${meta.outcome}` : ''}`);
    }
  }
  console.log();
}

requireNode();
install();
build();
const files = process.argv.slice(2);
process.exit(runTests(files.length > 0 ? files : FILES, { environment: { SET_BACK: 'all' }, describe: printTable }));
