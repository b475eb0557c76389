import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { cacheFolder, freePort } from '@broomwagon/testing';
import type { Stage } from '../stage';

/** Another gateway that is measured beside ours, from the package index that pip is configured for. */
interface Peer {
  requirement: string;
  /** Arguments for Python. */
  args(port: number, engine: string): Promise<string[]>;
}

const PROBE = JSON.stringify({ input_ids: [11], sampling_params: { max_new_tokens: 1 } });
const READY_MS = 60_000;
const INSTALL_MS = 600_000;
const PEERS: Record<string, Peer> = {
  // The gateway of SGLang, which slime and miles start.
  smg: {
    requirement: 'smg==1.13.0',
    args: async (port, engine) => {
      const way = `--host 127.0.0.1 --port ${port} --worker-urls ${engine} --policy round_robin`;
      const metrics = `--prometheus-host 127.0.0.1 --prometheus-port ${await freePort()}`;
      return `-m smg launch ${way} ${metrics} --disable-health-check --log-level error`.split(' ');
    },
  },
};

/** Installs a peer into the cache folder, once, and starts it in front of the engine. */
export async function startPeer(
  stage: Stage,
  name: string,
  engine: string,
): Promise<{ name: string; port: number; processIds: number[] }> {
  const peer = PEERS[name];
  if (peer === undefined) throw new Error(`--peer is one of: ${Object.keys(PEERS).join(', ')}`);
  const python = await installed(peer.requirement);
  const port = await freePort();
  const child = spawn(python, await peer.args(port, engine), { stdio: ['ignore', 'ignore', 'inherit'] });
  stage.onStop(async () => void child.kill());
  const endsAtMs = performance.now() + READY_MS;
  const generate = { method: 'POST', headers: { 'content-type': 'application/json' }, body: PROBE };
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/generate`, generate).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (performance.now() > endsAtMs || child.exitCode !== null) throw new Error(`${peer.requirement} did not start`);
    await delay(200);
  }
  return { name: peer.requirement.replace('==', ' '), port, processIds: [child.pid!] };
}

/** @returns the Python of an environment that has the package */
async function installed(requirement: string): Promise<string> {
  const folder = join(cacheFolder(), 'peers', requirement);
  const python = join(folder, 'bin', 'python');
  if (existsSync(python)) return python;
  const run = (file: string, ...args: string[]) => promisify(execFile)(file, args, { timeout: INSTALL_MS });
  // The folder is complete as soon as it exists, since it is moved into place; an environment of Python that is called
  // by path may be moved.
  const preparation = `${folder}.preparation`;
  await rm(preparation, { recursive: true, force: true });
  await mkdir(join(folder, '..'), { recursive: true });
  await run(process.env.PYTHON ?? 'python3', '-m', 'venv', preparation);
  await run(join(preparation, 'bin', 'python'), '-m', 'pip', 'install', '--quiet', requirement);
  await rename(preparation, folder);
  return python;
}
