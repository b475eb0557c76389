// `npm run test:clients`: the published clients of each dialect against the gateway. `npm test` runs the part that needs
// Node only; here the client of OpenAI for Python is installed into the cache folder, once, from the package index that
// pip is configured for. Without Python or the index its tests are skipped by name.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { build, install, requireNode, root } from './prepare.mjs';
import { runTests } from './vitest.mjs';

const REQUIREMENTS = join(root, 'test', 'clients', 'requirements.txt');
const PYTHONS = ['python3', 'python3.13', 'python3.12', 'python3.11'];
const INSTALL_TIMEOUT_MS = 600_000;

/** Python with the packages of the requirements; undefined if it cannot be had. */
function python() {
  const cache =
    process.env.BROOMWAGON_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'broomwagon');
  const folder = join(cache, 'clients');
  const executable = join(folder, 'venv', 'bin', 'python');
  const stamp = join(folder, 'installed');
  const wanted = readFileSync(REQUIREMENTS, 'utf8');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return executable;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const found = [process.env.PYTHON, ...PYTHONS].find((one) => one && succeeds(one, ['--version'], 'ignore'));
  if (found === undefined) return skip('there is no Python');
  if (!succeeds(found, ['-m', 'venv', join(folder, 'venv')])) return skip('Python has no venv');
  if (!succeeds(executable, ['-m', 'pip', 'install', '--quiet', '--requirement', REQUIREMENTS])) {
    return skip('pip has failed');
  }
  writeFileSync(stamp, wanted);
  return executable;
}

function succeeds(command, args, stdio = 'inherit') {
  return spawnSync(command, args, { stdio, timeout: INSTALL_TIMEOUT_MS }).status === 0;
}

function skip(reason) {
  console.log(`The tests of the clients for Python are skipped: ${reason}.`);
  return undefined;
}

requireNode();
install();
build();
const executable = python();
const environment = executable === undefined ? {} : { CLIENTS_PYTHON: executable };
process.exit(runTests(['--config', 'test/clients/vitest.config.mjs', ...process.argv.slice(2)], { environment }));
