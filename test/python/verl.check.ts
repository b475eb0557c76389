import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import type { ManagedProcess } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestSystem } from '../system/test-system';
import { pytest } from './pytest';

/** A Python with verl, Ray and PyTorch: requirements-verl.txt. */
const python = process.env.VERL_PYTHON ?? '';
const PACKAGE = resolve('clients/python');
const TESTS = join(PACKAGE, 'tests_verl');
const DOWNLOAD_TIMEOUT_MS = 300_000;
/** Each process of Ray imports verl, which takes a minute on a machine with other work. */
const TESTS_TIMEOUT_MS = 2_400_000;
/** Releases, with the number of unit tests that each has of its balancer. The environment has the newest one. */
const RELEASES = [
  ['0.9.1', 15],
  ['0.9.0', 15],
] as const;

function pip(...args: string[]): void {
  const options = ['--quiet', '--disable-pip-version-check', '--no-deps'];
  execFileSync(python, ['-m', 'pip', ...args, ...options], { timeout: DOWNLOAD_TIMEOUT_MS });
}

/** `POST /<process>/kill` kills a process of the system with SIGKILL, `POST /<process>/start` starts an ended one. */
async function serveProcesses(system: TestSystem): Promise<Server> {
  const obey = async (replica: ManagedProcess, order: string) => {
    if (order === 'kill') {
      replica.kill();
      await replica.exited;
    } else if (!replica.running) await replica.start();
  };
  const server = createServer((request, response) => {
    const [, name, order] = request.url!.split('/');
    obey(system.process(name!), order!).then(
      () => response.end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

describe.skipIf(python === '')('verl', () => {
  let system: TestSystem;
  let processes: Server;
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-verl-'));

  const wheel = join(folder, 'wheel');

  beforeAll(async () => {
    pip('install', '--target', wheel, PACKAGE);
    system = await TestSystem.start({ balancers: 2, workers: 0, engines: 0, coordinators: 0 });
    processes = await serveProcesses(system);
  }, DOWNLOAD_TIMEOUT_MS);
  afterAll(async () => {
    processes?.close();
    await system?.stop();
    rmSync(folder, { recursive: true });
  });

  describe.each(RELEASES)('%s', (release, unitTests) => {
    /** Folder of the release, which goes before the release of the environment. */
    const installed = join(folder, `installed-${release}`);
    const environment = {
      // The installed package comes last. It is needed for its entry point.
      PYTHONPATH: [installed, ...['src', 'tests', 'tests_verl'].map((name) => resolve(PACKAGE, name)), wheel].join(
        delimiter,
      ),
      // verl sets PYTHONHASHSEED too, if equal requests are to get equal servers.
      PYTHONHASHSEED: '7',
      RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO: '0',
      VERL_RELEASE: release,
    };

    beforeAll(() => pip('install', '--target', installed, `verl==${release}`), DOWNLOAD_TIMEOUT_MS);

    it(
      'has a balancer, a router and clients with leases',
      async () => {
        const PROCESSES_URL = `http://127.0.0.1:${(processes.address() as AddressInfo).port}`;
        expect(await pytest(python, system, [TESTS], { ...environment, PROCESSES_URL })).toMatch(/\d+ passed/);
      },
      TESTS_TIMEOUT_MS,
    );

    it(
      'passes its own unit tests of its balancer with the balancer of Broomwagon',
      async () => {
        pip('download', '--no-binary', ':all:', '--dest', folder, `verl==${release}`);
        execFileSync('tar', ['xzf', join(folder, `verl-${release}.tar.gz`), '-C', folder]);
        const source = join(folder, `verl-${release}`);
        const tests = join(source, 'tests/experimental/agent_loop/test_basic_agent_loop.py');
        const args = ['-p', 'substitute', '--rootdir', source, tests, '-k', 'TestLoadBalancer'];
        const output = await pytest(python, system, args, {
          ...environment,
          PYTHONPATH: [environment.PYTHONPATH, source].join(delimiter),
        });
        expect(output).toContain(`${unitTests} passed`);
      },
      TESTS_TIMEOUT_MS,
    );
  });
});
