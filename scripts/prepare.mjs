// Installs packages and builds if necessary. Uses only Node's own modules, since it runs before anything is installed.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withFileLock } from './file-lock.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const installedMark = join(root, 'node_modules', '.package-lock.json');
const builtMark = join(root, 'dist', '.built');
/** Lock file: without it, two runs in one checkout would remove each other's packages and dist/. */
const buildLock = join(root, '.build.lock');
const buildInputs = ['apps', 'libs', 'lab', 'tools', 'docs/protocol/openapi.json', '.swcrc', 'package-lock.json'];

/** Exit status of a test suite that this machine cannot run. */
export const CANNOT_RUN = 2;

/** Ends a test suite that this machine cannot run; `npm run test:all` has the reason in its table. */
export function cannotRun(reason) {
  console.error(`Not run: ${reason}`);
  process.exit(CANNOT_RUN);
}

/** Runs a command in the project's root; ends this process with its status when it fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    shell: process.platform === 'win32',
    ...options,
  });
  if (result.error) {
    console.error(`cannot run ${command}: ${result.error.message}`);
    process.exit(1);
  }
  if (result.status !== 0) process.exit(result.status ?? 1);
}

/**
 * Runs scripts of package.json at the same time, since each keeps one core busy, and prints the output of a script when
 * it has ended. Ends this process after all scripts if one has failed.
 */
export async function runTogether(scripts) {
  const statuses = await Promise.all(scripts.map(runScript));
  const failed = statuses.find((status) => status !== 0);
  if (failed !== undefined) process.exit(failed);
}

async function runScript(script) {
  const child = spawn('npm', ['run', '--silent', script], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => output.push(bytes));
  const status = await new Promise((settle) => {
    child.on('error', (error) => {
      output.push(`cannot run npm: ${error.message}\n`);
      settle(1);
    });
    child.on('close', (code) => settle(code ?? 1));
  });
  for (const part of output) process.stdout.write(part);
  if (status !== 0) console.error(`npm run ${script} has failed`);
  return status;
}

function newestMtimeMs(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return readdirSync(path).reduce((newest, name) => Math.max(newest, newestMtimeMs(join(path, name))), stat.mtimeMs);
}

function olderThan(mark, path) {
  return !existsSync(mark) || statSync(mark).mtimeMs < newestMtimeMs(path);
}

export function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19)) return;
  console.error(`Broomwagon needs Node 20.19, or 22.12 or later; this is ${process.version}. See https://nodejs.org/.`);
  process.exit(1);
}

/**
 * Runs `npm ci` if node_modules is missing or older than the lock file. A linked node_modules belongs to another
 * checkout, in which `npm ci` would delete the packages.
 */
export function install() {
  if (lstatSync(join(root, 'node_modules'), { throwIfNoEntry: false })?.isSymbolicLink()) return;
  withFileLock(buildLock, () => {
    if (!olderThan(installedMark, join(root, 'package-lock.json'))) return;
    console.log('Installing packages (once, about a minute) ...');
    run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
    const now = new Date();
    utimesSync(installedMark, now, now);
  });
}

/** Builds if a source is newer than the last build; after a commit without changed sources, only writes its name. */
export function build() {
  withFileLock(buildLock, () => {
    const inputs = buildInputs.map((input) => join(root, input)).filter((path) => existsSync(path));
    if (!inputs.some((path) => olderThan(builtMark, path))) return writeCommit();
    console.log('Building ...');
    compileAll();
  });
}

/**
 * Compiles services and libraries with swc and the console with Vite to dist/, and writes the types of the client of
 * the REST API.
 */
export function compile() {
  withFileLock(buildLock, compileAll);
}

function compileAll() {
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  writeClientTypes();
  const swc = join(root, 'node_modules', '@swc', 'cli', 'bin', 'swc.js');
  const ignored = ['--ignore=**/*.d.ts', '--ignore=apps/console/**'];
  const options = ['--config-file=.swcrc', '--out-dir=dist', '--copy-files', '--quiet', ...ignored];
  run(process.execPath, [swc, 'apps', 'libs', 'lab', 'tools', ...options]);
  const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js');
  run(process.execPath, [vite, 'build', 'apps/console', '--logLevel=warn']);
  mkdirSync(join(root, 'dist'), { recursive: true });
  writeCommit();
  writeFileSync(builtMark, '');
}

/** Writes the commit of this checkout for `broomwagon_build_info`, with `-dirty` if files have other changes. */
function writeCommit() {
  const options = ['describe', '--always', '--dirty', '--abbrev=40', '--exclude=*'];
  const { status, stdout } = spawnSync('git', options, { cwd: root, encoding: 'utf8' });
  // There is no git in an image, and no checkout in an archive of the sources.
  writeFileSync(join(root, 'dist', 'commit'), status === 0 ? stdout.trim() : 'unknown');
}

/** Writes the types of libs/admin-client, from the committed docs/protocol/openapi.json. */
export function writeClientTypes() {
  const generator = join(root, 'node_modules', 'openapi-typescript', 'bin', 'cli.js');
  const target = join('libs', 'admin-client', 'src', 'openapi.gen.d.ts');
  run(process.execPath, [generator, join('docs', 'protocol', 'openapi.json'), '-o', target], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
