// `npm run test:faults`: all fault tests, with every pair of conditions under which Redis may be set back, and all
// properties with four times as many runs as in `npm test`; rolling updates start from the previous release. Random
// draws follow from a printed seed; `TEST_SEED=<seed>` repeats a run. Prints a table and ends with `N passed, N failed,
// N skipped`. Takes about half an hour; `-- test/set-back/torn` runs a part.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { oldBuild } from './old-build.mjs';
import { build, install, requireNode, root } from './prepare.mjs';
import { pythonOfShortTests } from './python.mjs';
import { runTests } from './vitest.mjs';

const FILES = [
  'apps/gateway/src/core/repeats',
  'apps/gateway/src/dialects/zoo',
  'lab/engine-simulator/src/zoo',
  'libs/state/src/audit/miscounts',
  'test/set-back',
  'test/admin-api-killed',
  'test/ends-during-start',
  'test/equal-rewards',
  'test/exactly-once',
  'test/failpoints',
  'test/fuzz',
  'test/gateway-outages',
  'test/gateway-under-chaos',
  'test/link-faults',
  'test/moves-under-chaos',
  'test/replicas-that-vanish',
  'test/rolling-update',
  'test/rounds-zoo',
  'test/servers-that-restart',
  'test/stops-in-any-order',
  'test/trainers-under-faults',
  'test/workers-that-vanish',
];

/** Spec files with properties that run on random inputs. */
function propertySpecs() {
  return ['libs', 'apps', 'lab'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .map((name) => join(folder, name))
      .filter((path) => path.endsWith('.spec.ts') && /fc\.assert|forDataSets/.test(readFileSync(join(root, path)))),
  );
}

function printOutcomes(outcomes) {
  let lastFile;
  for (const { file, state, title, durationMs, meta } of outcomes) {
    if (file !== lastFile) console.log(`\n${file}`);
    lastFile = file;
    const seconds = (durationMs / 1_000).toFixed(1).padStart(6);
    console.log(`  ${state.padEnd(7)} ${seconds} s  ${title}${meta.outcome ? ` -> ${meta.outcome}` : ''}`);
  }
  console.log();
}

requireNode();
install();
build();
const files = process.argv.slice(2);
const seed = process.env.TEST_SEED ?? String(Math.floor(Math.random() * 2 ** 31));
console.log(`TEST_SEED=${seed}`);
const wanted = files.length > 0 ? files : [...FILES, ...propertySpecs()];
const old = wanted.some((file) => file.includes('rolling-update')) ? oldBuild() : undefined;
const python = wanted.some((file) => file.includes('trainers-under-faults')) ? pythonOfShortTests() : undefined;
const environment = {
  SET_BACK: 'all',
  TEST_SEED: seed,
  TEST_RUNS_FACTOR: '4',
  ...(old && { OLD_BUILD: old }),
  ...(python && { CLIENT_PYTHON: python }),
};
const status = runTests(wanted, { environment, describe: printOutcomes });
console.log(`The seed of this run: TEST_SEED=${seed}`);
process.exit(status);
