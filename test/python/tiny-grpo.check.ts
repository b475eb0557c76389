import { execFile } from 'node:child_process';
import { delimiter, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const FOLDER = resolve('examples/tiny-grpo');
const python = process.env.TINY_GRPO_PYTHON ?? '';

/** @returns output of the script @throws Error with the output if the script fails */
async function run(...args: string[]): Promise<string> {
  const paths = [FOLDER, resolve('clients/python/src')].join(delimiter);
  const env = { ...process.env, PYTHONPATH: paths, PYTHONDONTWRITEBYTECODE: '1', NO_COLOR: '1', FORCE_COLOR: '' };
  try {
    return (await promisify(execFile)(python, args, { cwd: FOLDER, env, maxBuffer: 2 ** 26 })).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

describe.skipIf(python === '')('examples/tiny-grpo', () => {
  it(
    'trains with two policies, and through the deaths of trainer, worker and coordinator',
    { timeout: 900_000 },
    async () => {
      expect(await run('-m', 'pytest', '-q', '-p', 'no:cacheprovider')).toMatch(/\d+ passed/);
    },
  );

  it('is well typed, and has no findings of ruff', async () => {
    await run('-m', 'mypy');
    await run('-m', 'ruff', 'check', '--no-cache');
    await run('-m', 'ruff', 'format', '--no-cache', '--check');
  });
});
