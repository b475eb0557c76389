import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'broomwagon-fleet-spec-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('measures a small fleet of real processes, and reports the numbers of the targets', async () => {
  const file = join(folder, 'fleet.json');
  const bench = ['dist/lab/bench/src/bench.cli.js', 'fleet', '--quick', '--json', file];
  const { stdout } = await promisify(execFile)(process.execPath, bench);
  expect(stdout).toContain('cores for 10,000 GPUs');
  const report = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
  for (const name of [
    'tokenCpuRatio',
    'workerInflightPerCore',
    'gatewayInflightPerCore',
    'saveCpuUs',
    'savedOverMade',
    'responseCpuOverDirect',
    'coresFor10000Gpus',
    'primariesFor10000Gpus',
  ]) {
    expect(report[name], name).toEqual(expect.any(Number));
  }
  expect(report.holders).toMatchObject([
    { holder: 'worker', interval: 1, requests: 64 },
    { holder: 'worker', interval: 64, requests: 128 },
    { holder: 'gateway', interval: 1, requests: 64 },
    { holder: 'gateway', interval: 64, requests: 128 },
  ]);
}, 600_000);
