import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestSystem } from '../system/test-system';
import { pytest, runPython } from './pytest';

/** The oldest and the newest Python of this machine, with all packages of requirements.txt. */
const pythons = (process.env.CLIENT_PYTHONS ?? '').split(' ').filter((path) => path !== '');
const newest = pythons.at(-1);

describe.skipIf(newest === undefined)('the client for Python', () => {
  let system: TestSystem;

  beforeAll(async () => {
    system = await TestSystem.start({ workers: 1 });
  });
  afterAll(() => system?.stop());

  it.each(pythons)('passes its tests with %s', async (python) => {
    expect(await pytest(python, system, [])).toMatch(/\d+ passed/);
    await system.expectAtRest();
  });

  it.each(pythons)('is well typed for mypy --strict with %s', async (python) => {
    await runPython(python, ['-m', 'mypy']);
  });

  it('has no findings of ruff, and its format', async () => {
    await runPython(newest!, ['-m', 'ruff', 'check']);
    await runPython(newest!, ['-m', 'ruff', 'format', '--check']);
  });

  it('builds a wheel and an sdist that can be installed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'broomwagon-python-'));
    await runPython(newest!, ['-m', 'build', '--no-isolation', '--outdir', folder]);
    const [wheel, sdist] = readdirSync(folder).sort();
    expect([wheel, sdist]).toEqual([expect.stringMatching(/\.whl$/), expect.stringMatching(/\.tar\.gz$/)]);
    await runPython(newest!, ['-m', 'venv', join(folder, 'venv')]);
    const installed = join(folder, 'venv', 'bin', 'python');
    await runPython(installed, ['-m', 'pip', 'install', '--quiet', join(folder, wheel!)]);
    const where = ['-c', 'import broomwagon.errors, broomwagon.protocol; print(broomwagon.__file__)'];
    expect(await runPython(installed, where, undefined, { PYTHONPATH: '' })).toContain(folder);
    rmSync(folder, { recursive: true });
  });
});
