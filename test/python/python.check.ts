import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startNats, TEST_CERTIFICATE, TEST_KEY } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunningSystem } from '../system/running-system';
import type { TestSystem } from '../system/test-system';
import { pytest, pythonBlocks, runPython, startPythonSystem } from './pytest';

/** The oldest and the newest Python of this machine, with all packages of requirements.txt. */
const pythons = (process.env.CLIENT_PYTHONS ?? '').split(' ').filter((path) => path !== '');
const newest = pythons.at(-1);

describe.skipIf(newest === undefined)('the client for Python', () => {
  let system: TestSystem;

  beforeAll(async () => {
    system = await startPythonSystem();
  });
  afterAll(() => system?.stop());

  it.each(pythons)('passes its tests with %s', async (python) => {
    expect(await pytest(python, system, [])).toMatch(/\d+ passed/);
    await system.expectAtRest();
  });

  it('completes prompts as the guide for TRL does', async () => {
    // The first block has the settings, which TRL itself checks in verl.check.ts.
    const [, block, ...others] = pythonBlocks('docs/trainers/trl.md');
    expect(others).toEqual([]);
    const lines = [
      'import json',
      'from types import SimpleNamespace',
      'trainer = SimpleNamespace(processing_class=lambda text: {"input_ids": [1, 2, 3]},',
      '    args=SimpleNamespace(max_completion_length=8, temperature=1.0))',
      'print(json.dumps(rollout_func(["one", "two"], trainer)))',
    ];
    const output = await runPython(newest!, ['-c', [block, ...lines].join('\n')], system);
    const rollout = JSON.parse(output) as Record<'prompt_ids' | 'completion_ids' | 'logprobs', number[][]>;
    expect(rollout.prompt_ids).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
    const lengths = rollout.completion_ids.map((ids) => ids.length);
    expect(lengths.every((length) => length > 0)).toBe(true);
    expect(rollout.logprobs.map((each) => each.length)).toEqual(lengths);
    await system.expectAtRest();
  });

  it('grades as the guide for OpenRLHF does', async () => {
    const [block, ...others] = pythonBlocks('docs/trainers/openrlhf.md');
    expect(others).toEqual([]);
    const stubs = [
      'import sys',
      'from types import SimpleNamespace',
      'sys.modules["torch"] = SimpleNamespace(tensor=float)',
      'class MultiTurnAgentExecutor:',
      '    def __init__(self, instance): self.instance = instance',
      'names = {"AgentInstanceBase": object, "MultiTurnAgentExecutor": MultiTurnAgentExecutor}',
      'agent = SimpleNamespace(**names)',
      'for name in ("openrlhf", "openrlhf.utils", "openrlhf.utils.agent"): sys.modules[name] = agent',
    ];
    const lines = [
      'import json',
      'async def main():',
      '    instances = [AgentExecutor().instance() for _ in range(3)]',
      '    steps = (each.step({"action_text": "2 + 2 = 4"}) for each in instances)',
      '    print(json.dumps(await asyncio.gather(*steps)))',
      '    await _client.close()',
      'asyncio.run(main())',
    ];
    const output = await runPython(newest!, ['-c', [...stubs, block, ...lines].join('\n')], system);
    const steps = JSON.parse(output) as { rewards: number; done: boolean }[];
    // The simulated engine never answers "yes".
    expect(steps.map(({ rewards, done }) => `${rewards} ${done}`)).toEqual(Array(3).fill('0 true'));
    await system.expectAtRest();
  });

  it('connects to a NATS that asks for a client certificate', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'broomwagon-python-tls-'));
    const [certificate, key] = ['server.crt', 'server.key'].map((name) => join(folder, name)) as [string, string];
    writeFileSync(certificate, TEST_CERTIFICATE);
    writeFileSync(key, TEST_KEY);
    const files = `cert_file: "${certificate}", key_file: "${key}", ca_file: "${certificate}"`;
    const nats = await startNats({ configuration: `tls { ${files}, verify: true }` });
    const lines = [
      'import asyncio',
      'from broomwagon import BroomwagonError, Client',
      'async def main():',
      '    try:',
      '        async with Client(connect_timeout=2) as client:',
      '            await client.call("lb.status", {}, deadline=0.1)',
      '    except BroomwagonError as error:',
      '        print(error.field, error)',
      'asyncio.run(main())',
    ];
    const settings = { NATS_TLS_CA: certificate, NATS_TLS_CERT: certificate, NATS_TLS_KEY: key };
    const NATS_URL = `tls://127.0.0.1:${nats.port}`;
    const says = (environment: Record<string, string>) =>
      runPython(newest!, ['-c', lines.join('\n')], undefined, { NATS_URL, ...environment });
    try {
      expect(await says({ ...settings, NATS_TLS_SERVER_NAME: 'localhost' })).toContain('No service handles');
      expect(await says({ ...settings, NATS_TLS_SERVER_NAME: 'nats.example' })).toContain('Cannot connect');
      expect(await says({ NATS_TLS_CA: certificate, NATS_TLS_SERVER_NAME: 'localhost' })).toContain('Cannot connect');
      expect(await says({ ...settings, NATS_TLS_KEY: '/nowhere' })).toMatch(/^NATS_TLS_CERT VALIDATION_FAILED/);
    } finally {
      await nats.stop();
      rmSync(folder, { recursive: true });
    }
  });

  it.each(pythons)('is well typed for mypy --strict with %s', async (python) => {
    await runPython(python, ['-m', 'mypy']);
  });

  it('has no findings of ruff, and its format', async () => {
    await runPython(newest!, ['-m', 'ruff', 'check']);
    await runPython(newest!, ['-m', 'ruff', 'format', '--check']);
  });
});

describe.skipIf(newest === undefined)('the packages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-python-'));
  let wheel: string;
  let sdist: string;

  beforeAll(async () => {
    await runPython(newest!, ['-m', 'build', '--no-isolation', '--outdir', folder]);
    [wheel, sdist] = readdirSync(folder)
      .sort()
      .map((file) => join(folder, file)) as [string, string];
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('run each block of the documents in a new environment, with `npm start`', async () => {
    await runPython(newest!, ['-m', 'venv', join(folder, 'venv')]);
    const installed = join(folder, 'venv', 'bin', 'python');
    await runPython(installed, ['-m', 'pip', 'install', '--quiet', wheel]);
    const plugin =
      'from importlib.metadata import entry_points as of; [one.load() for one in of(group="verl.plugins")]';
    await runPython(installed, ['-c', plugin], undefined, { PYTHONPATH: '' });
    // verl hides errors of plugins, so this one ends the process.
    const asked = runPython(installed, ['-c', plugin], undefined, { PYTHONPATH: '', BROOMWAGON_VERL: 'balancer' });
    await expect(asked).rejects.toThrow("Broomwagon cannot be installed into verl: No module named 'verl'");
    const system = await RunningSystem.start('--steps', '1');
    try {
      await expect.poll(() => system.output, { timeout: 120_000 }).toContain('Ctrl-C ends everything');
      const variables = /export (.* POOL=.*)/
        .exec(system.output)![1]!
        .split(' ')
        .map((one) => one.split('='));
      const environment = { ...(Object.fromEntries(variables) as Record<string, string>), PYTHONPATH: '' };
      const [shown, ...others] = pythonBlocks('README.md');
      expect(shown!.split('\n').filter(Boolean)).toHaveLength(10);
      expect(others).toEqual([]);
      const ofClient = pythonBlocks('clients/python/README.md');
      expect(ofClient).toHaveLength(4);
      for (const block of [shown!, ...ofClient]) {
        // A worker runs until it is stopped.
        const stopAfterMs = block.includes('serve()') ? 3_000 : undefined;
        const output = await runPython(installed, ['-c', block], undefined, environment, stopAfterMs);
        if (stopAfterMs === undefined) expect(output).not.toBe('');
      }
    } finally {
      await system.stop();
    }
  });

  it('contain the license of the project, its version and their classification', async () => {
    const license = readFileSync('LICENSE', 'utf8');
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    for (const [path, script] of [
      [wheel, 'for name in (archive := zipfile.ZipFile(path)).namelist(): files[name] = archive.read(name)'],
      [sdist, 'for one in (archive := tarfile.open(path)): files[one.name] = archive.extractfile(one).read()'],
    ] as const) {
      const print = 'print(json.dumps({name: files[name].decode() for name in files if name[0] != "."}))';
      const lines = [`import json, tarfile, zipfile`, `path, files = ${JSON.stringify(path)}, {}`, script, print];
      const files = JSON.parse(await runPython(newest!, ['-c', lines.join('\n')])) as Record<string, string>;
      const ends = (end: string) => Object.entries(files).find(([name]) => name.endsWith(end))?.[1];
      expect(ends('/LICENSE')).toBe(license);
      const metadata = ends('METADATA') ?? ends('PKG-INFO')!;
      expect(metadata).toContain(`Version: ${version}\n`);
      expect(metadata).toContain('License-Expression: Apache-2.0\nLicense-File: LICENSE\n');
      for (const python of pythons) {
        const minor = (await runPython(python, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'])).trim();
        expect(metadata).toContain(`Classifier: Programming Language :: Python :: ${minor}\n`);
      }
    }
  });

  it('include an sdist that can be installed', async () => {
    const target = join(folder, 'unpacked');
    const options = ['--quiet', '--no-deps', '--no-build-isolation', '--target', target];
    await runPython(newest!, ['-m', 'pip', 'install', ...options, sdist]);
    expect(readdirSync(join(target, 'broomwagon'))).toContain('py.typed');
  });
});
