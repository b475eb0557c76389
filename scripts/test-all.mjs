// `npm run test:all`: every test suite, one after another, and one table at the end. A suite that cannot run here (no
// Go, no Chromium, no package index) is in the table with the reason. `-- faults nats` runs the suites with these
// names; `-- --changed [COMMIT]` (`npm run test:changed`) runs the suites that the change since COMMIT concerns
// (default: since the common ancestor with `main`), by the table of folders in suites.mjs.
import { execFileSync, spawn } from 'node:child_process';
import { CANNOT_RUN, root } from './prepare.mjs';
import { concernedSuites, SUITES } from './suites.mjs';
import { printTable } from './table.mjs';

const COUNTS = /^(\d+) passed, (\d+) failed, (\d+) skipped$/;
const MAX_REASON_CHARACTERS = 120;

function git(...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
}

/** Files that differ from the common ancestor with a commit, including untracked files. */
function changedFiles(commit) {
  const changed = git('diff', '--name-only', git('merge-base', commit, 'HEAD'));
  return `${changed}\n${git('ls-files', '--others', '--exclude-standard')}`.split('\n').filter((name) => name !== '');
}

function wantedSuites([first, ...rest]) {
  if (first === '--changed') return concernedSuites(changedFiles(rest[0] ?? 'main'));
  const names = first === undefined ? [] : [first, ...rest];
  const unknown = names.filter((name) => !SUITES.some((suite) => suite.name === name));
  if (unknown.length > 0) {
    console.error(`No suite ${unknown.join(', ')}; there are ${SUITES.map(({ name }) => name).join(', ')}`);
    process.exit(2);
  }
  return SUITES.filter(({ name }) => names.length === 0 || names.includes(name));
}

/** Runs a suite, prints its output, and resolves with its row of the table. */
async function run({ name, script, arguments: args = [] }) {
  console.log(`\n== ${name}: npm run ${[script, ...args].join(' ')}`);
  const began = performance.now();
  const child = spawn('npm', ['run', '--silent', script, '--', ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines = [];
  const read = (stream, target) => {
    let rest = '';
    stream.setEncoding('utf8').on('data', (text) => {
      target.write(text);
      const parts = (rest + text).split('\n');
      rest = parts.pop();
      lines.push(...parts.map((line) => line.trim()).filter((line) => line !== ''));
    });
  };
  read(child.stdout, process.stdout);
  read(child.stderr, process.stderr);
  const status = await new Promise((settle) => {
    child.on('error', (error) => {
      lines.push(error.message);
      settle(1);
    });
    child.on('close', (code) => settle(code ?? 1));
  });
  return { name, minutes: (performance.now() - began) / 60_000, ...summarize(lines, status) };
}

/** Counts, result and reasons of a suite, from its last lines (vitest.mjs) and its exit status. */
function summarize(lines, status) {
  const counts = lines.findLast((line) => COUNTS.test(line));
  const [, passed, failed, skipped] = COUNTS.exec(counts ?? '') ?? [undefined, '-', '-', '-'];
  const after = (prefix) => lines.filter((line) => line.startsWith(prefix)).map((line) => line.slice(prefix.length));
  if (status === CANNOT_RUN) return { result: 'not run', passed, failed, skipped, reasons: after('Not run: ') };
  const failures = status === 0 ? [] : after('Failed: ');
  if (status !== 0 && failures.length === 0) failures.push(lines.at(-1) ?? 'no output');
  // A suite whose tests are all skipped has shown nothing.
  const result = status !== 0 ? 'failed' : passed === '0' ? 'not run' : 'passed';
  return { result, passed, failed, skipped, reasons: [...failures, ...after('Skipped: ')] };
}

function toRow({ name, result, passed, failed, skipped, minutes, reasons }) {
  const [first = '', ...others] = reasons;
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  return [name, result, passed, failed, skipped, minutes.toFixed(1), first.slice(0, MAX_REASON_CHARACTERS) + more];
}

const wanted = wantedSuites(process.argv.slice(2));
console.log(`Suites: ${wanted.map(({ name }) => name).join(', ') || 'none'}`);
const outcomes = [];
// Ctrl-C ends the running suite too; the table then has the suites so far.
let isInterrupted = false;
process.once('SIGINT', () => (isInterrupted = true));
for (const suite of wanted) if (!isInterrupted) outcomes.push(await run(suite));
console.log();
for (const { name, reasons } of outcomes) for (const reason of reasons) console.log(`${name}: ${reason}`);
printTable([['suite', 'result', 'passed', 'failed', 'skipped', 'minutes', 'reason'], ...outcomes.map(toRow)]);
process.exit(isInterrupted || outcomes.some(({ result }) => result === 'failed') ? 1 : 0);
