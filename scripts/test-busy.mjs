// `npm run test:busy`: the tests on a busy machine, by hand. Runs them three times beside two busy loops for each core,
// prints a table of the tests that failed in any run, and ends with `N passed, N failed, N skipped` of all runs. A test
// that fails only here depends on the speed of the machine. `-- test/moves.spec.ts --runs 5 --loops 8` changes files,
// runs and loops; other arguments go to Vitest. All tests take about half an hour a run.
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { build, install, requireNode } from './prepare.mjs';
import { pythonOfShortTests } from './python.mjs';
import { printTable } from './table.mjs';
import { printCounts, testOutcomes } from './vitest.mjs';

const args = process.argv.slice(2);
const runs = takeNumber('--runs', 3);
const loops = takeNumber('--loops', 2 * availableParallelism());

/** Removes an option with a whole number from the arguments, and returns the number. */
function takeNumber(name, byDefault) {
  const at = args.indexOf(name);
  if (at < 0) return byDefault;
  const [, text] = args.splice(at, 2);
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1) return number;
  console.error(`${name} needs a whole number of at least 1`);
  process.exit(2);
}

/** Threads end with this process, however it ends. */
async function startLoop() {
  await once(new Worker('for (;;);', { eval: true }), 'online');
}

/** A row for each test that failed in any run. */
function failureRows(outcomesOfRuns) {
  const name = ({ file, title }) => `${file} > ${title}`;
  const states = outcomesOfRuns.map(
    (outcomes) => new Map((outcomes ?? []).map((outcome) => [name(outcome), outcome.state])),
  );
  const failed = outcomesOfRuns.flatMap((outcomes) => (outcomes ?? []).filter(({ state }) => state === 'failed'));
  const names = [...new Set(failed.map(name))].toSorted();
  return names.map((test) => [test, ...states.map((byName) => byName.get(test) ?? '-')]);
}

requireNode();
install();
build();
const executable = pythonOfShortTests();
const environment = executable === undefined ? {} : { CLIENT_PYTHON: executable };
await Promise.all(Array.from({ length: loops }, startLoop));
const ended = [];
for (let run = 1; run <= runs; run += 1) {
  console.log(`\nRun ${run} of ${runs}, beside ${loops} busy loops`);
  ended.push(testOutcomes(args, { environment }));
}
const rows = failureRows(ended.map(({ outcomes }) => outcomes));
console.log();
if (rows.length > 0) printTable([['failed test', ...ended.map((_, index) => `run ${index + 1}`)], ...rows]);
printCounts(ended.flatMap(({ outcomes }) => outcomes ?? []));
process.exit(ended.find(({ status }) => status !== 0)?.status ?? 0);
