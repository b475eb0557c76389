import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestSystem } from '../system/test-system';
import { pytest } from './pytest';

/** A Python with verl, Ray and PyTorch: requirements-verl.txt. */
const python = process.env.VERL_PYTHON ?? '';
const TESTS = resolve('clients/python/tests_verl');
const DOWNLOAD_TIMEOUT_MS = 120_000;

describe.skipIf(python === '')('verl', () => {
  let system: TestSystem;
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-verl-'));
  const environment = {
    PYTHONPATH: ['src', 'tests', 'tests_verl'].map((name) => resolve('clients/python', name)).join(delimiter),
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO: '0',
  };

  beforeAll(async () => {
    system = await TestSystem.start({ workers: 0, engines: 0, coordinators: 0 });
  });
  afterAll(async () => {
    await system?.stop();
    rmSync(folder, { recursive: true });
  });

  it('has a balancer, a router and clients with leases', async () => {
    expect(await pytest(python, system, [TESTS], environment)).toMatch(/\d+ passed/);
  });

  it('passes its own unit tests of its balancer with that of Broomwagon', async () => {
    const download = ['download', 'verl==0.9.1', '--quiet', '--no-deps', '--no-binary', ':all:', '--dest', folder];
    execFileSync(python, ['-m', 'pip', ...download], { timeout: DOWNLOAD_TIMEOUT_MS });
    execFileSync('tar', ['xzf', join(folder, 'verl-0.9.1.tar.gz'), '-C', folder]);
    const source = join(folder, 'verl-0.9.1');
    const tests = join(source, 'tests/experimental/agent_loop/test_basic_agent_loop.py');
    const args = ['-p', 'substitute', '--rootdir', source, tests, '-k', 'TestLoadBalancer'];
    const output = await pytest(python, system, args, {
      ...environment,
      PYTHONPATH: [environment.PYTHONPATH, source].join(delimiter),
    });
    expect(output).toMatch(/15 passed/);
  });
});
