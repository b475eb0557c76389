// `npm run test:all`: every test suite, one after another, and one table at the end. A suite that cannot run here (no
// Go, no Chromium, no package index) is in the table with the reason. `-- faults nats` runs the suites with these
// names; `-- --changed [COMMIT]` (`npm run test:changed`) runs the suites that the change since COMMIT concerns
// (default: since the common ancestor with `main`), by the table of folders in suites.mjs.
import { execFileSync, spawn } from 'node:child_process';
import { root } from './prepare.mjs';
import { concernedSuites, SUITES } from './suites.mjs';

/** Exit status of a suite that cannot run on this machine; its last line has the reason. */
const CANNOT_RUN = 2;

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

/** Runs a suite, prints its output, and resolves with its counts, status, last line and minutes. */
async function run({ name, script, arguments: args = [] }) {
  console.log(`\n== ${name}: npm run ${[script, ...args].join(' ')}`);
  const began = performance.now();
  const child = spawn('npm', ['run', '--silent', script, '--', ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let counts;
  let lastLine = '';
  const read = (stream, target) => {
    let rest = '';
    stream.setEncoding('utf8').on('data', (text) => {
      target.write(text);
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const line of lines.filter((one) => one.trim() !== '')) {
        lastLine = line.trim();
        counts = /^(\d+) passed, (\d+) failed, (\d+) skipped$/.exec(lastLine)?.slice(1) ?? counts;
      }
    });
  };
  read(child.stdout, process.stdout);
  read(child.stderr, process.stderr);
  const status = await new Promise((settle) => {
    child.on('error', () => settle(1));
    child.on('close', (code) => settle(code ?? 1));
  });
  return { name, status, counts, lastLine, minutes: (performance.now() - began) / 60_000 };
}

function row({ name, status, counts, lastLine, minutes }) {
  const result = status === 0 ? 'passed' : status === CANNOT_RUN ? 'not run' : 'failed';
  const reason = status === 0 ? '' : lastLine.slice(0, 100);
  return [name, result, ...(counts ?? ['-', '-', '-']), minutes.toFixed(1), reason];
}

function printTable(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((cells) => cells[column].length)));
  for (const cells of rows) console.log(`| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`);
}

const wanted = wantedSuites(process.argv.slice(2));
console.log(`Suites: ${wanted.map(({ name }) => name).join(', ') || 'none'}`);
const outcomes = [];
for (const suite of wanted) outcomes.push(await run(suite));
console.log();
printTable([['suite', 'result', 'passed', 'failed', 'skipped', 'minutes', 'reason'], ...outcomes.map(row)]);
process.exit(outcomes.some(({ status }) => status !== 0 && status !== CANNOT_RUN) ? 1 : 0);
