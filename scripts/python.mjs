// Virtual environments of Python for tests, in the cache folder. Only Node's own modules.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { root } from './prepare.mjs';

const NAMES = ['python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10'];
const INSTALL_TIMEOUT_MS = 1_800_000;

/** Finds Pythons from version `least` on, by version: `{ '3.11': 'python3' }`. PYTHON names one more. */
export function findPythons(least) {
  const pyenv = join(homedir(), '.pyenv', 'versions');
  const ofPyenv = existsSync(pyenv) ? readdirSync(pyenv).map((name) => join(pyenv, name, 'bin', 'python')) : [];
  const found = {};
  for (const command of [process.env.PYTHON, ...NAMES, ...ofPyenv].filter(Boolean)) {
    const print = 'import sys; print("%d.%d" % sys.version_info[:2])';
    const { status, stdout } = spawnSync(command, ['-c', print], { encoding: 'utf8' });
    const version = stdout?.trim();
    if (status === 0 && Number(version.split('.')[1]) >= least && version.startsWith('3.')) found[version] ??= command;
  }
  return found;
}

/** Whether `pythonWith` has created the environment before. */
export function hasPython(name, python, requirements, alone) {
  const { executable, stamp } = placeOf(name, python, requirements, alone);
  // The interpreter from which the environment was created may have been removed since.
  return existsSync(stamp) && succeeds(executable, ['-c', '']);
}

/**
 * Interpreter of a virtual environment with these packages, from the package index that pip is configured for; created
 * once. Packages of the file `alone` are installed without their requirements. Undefined, with a printed reason, if the
 * environment cannot be created.
 */
export function pythonWith(name, python, requirements, alone) {
  const { folder, executable, stamp, files, wanted } = placeOf(name, python, requirements, alone);
  if (hasPython(name, python, requirements, alone)) return executable;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  if (!succeeds(python, ['-m', 'venv', join(folder, 'venv')])) return skip(`${python} has no venv`);
  const options = ['--quiet', '--retries', '1', '--disable-pip-version-check'];
  for (const file of files) {
    const more = file === alone ? ['--no-deps'] : [];
    const isInstalled = succeeds(executable, ['-m', 'pip', 'install', ...options, ...more, '--requirement', file]);
    if (!isInstalled) return skip('pip has failed');
  }
  writeFileSync(stamp, wanted);
  return executable;
}

/** Interpreter of the short tests of the client. Undefined, with a printed reason, if there is none. */
export function pythonOfShortTests() {
  const [python] = Object.values(findPythons(10));
  if (python === undefined) return skip('there is no Python 3.10');
  return pythonWith('python', python, join(root, 'test', 'python', 'requirements-short.txt'));
}

/**
 * Interpreter of `examples/tiny-grpo`, with the newest Python. Undefined, with a printed reason, if there is none.
 * @param hasCupy whether to install the arrays of a GPU, which need CUDA 12
 */
export function pythonOfTinyGrpo(hasCupy = false) {
  const newest = Object.entries(findPythons(11)).sort(([a], [b]) => Number(b.slice(2)) - Number(a.slice(2)))[0];
  if (newest === undefined) return skip('there is no Python 3.11');
  const folder = join(root, 'examples', 'tiny-grpo');
  const requirements = join(folder, 'requirements.txt');
  if (!hasCupy) return pythonWith('python-tiny-grpo', newest[1], requirements);
  return pythonWith('python-tiny-grpo-cupy', newest[1], requirements, join(folder, 'requirements-gpu.txt'));
}

function placeOf(name, python, requirements, alone) {
  const cache =
    process.env.BROOMWAGON_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'broomwagon');
  const files = [requirements, ...(alone === undefined ? [] : [alone])];
  const { stdout: version } = spawnSync(python, ['--version'], { encoding: 'utf8' });
  const wanted = [version, ...files.map((file) => readFileSync(file, 'utf8'))].join('\n');
  // Checkouts with other requirements use other folders, so that no checkout removes packages of another one's tests.
  const folder = join(cache, `${name}-${createHash('sha256').update(wanted).digest('hex').slice(0, 12)}`);
  return { folder, executable: join(folder, 'venv', 'bin', 'python'), stamp: join(folder, 'installed'), files, wanted };
}

export function skip(reason) {
  console.log(`Skipped: tests of Python: ${reason}`);
  return undefined;
}

function succeeds(command, args) {
  return spawnSync(command, args, { stdio: 'inherit', timeout: INSTALL_TIMEOUT_MS }).status === 0;
}
