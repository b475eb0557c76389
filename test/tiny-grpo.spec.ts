import { execFileSync, spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Path of a Python with nats-py, pytest and, from Python 3.11 on, numpy, from scripts/test.mjs. */
const python = process.env.CLIENT_PYTHON;
const hasNumpy = python !== undefined && spawnSync(python, ['-c', 'import numpy']).status === 0;

// `npm run test:python` runs all tests, and trains with the services.
describe.skipIf(!hasNumpy)('examples/tiny-grpo', () => {
  it('raises the reward with steps of GRPO', { timeout: 120_000 }, () => {
    const folder = resolve('examples/tiny-grpo');
    const env = { ...process.env, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' };
    const args = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'tests/test_reward.py'];
    expect(execFileSync(python!, args, { cwd: folder, env, encoding: 'utf8' })).toContain('1 passed');
  });
});
