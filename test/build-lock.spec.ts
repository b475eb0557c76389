import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'broomwagon-lock-'));
afterAll(() => rmSync(folder, { recursive: true }));
const lock = join(folder, 'lock');
const counter = join(folder, 'counter');
const module = pathToFileURL(resolve('scripts/file-lock.mjs')).href;

/** Adds 1 to the counter ten times, reading and writing it in two steps. */
const PROGRAM = `
  import { readFileSync, writeFileSync } from 'node:fs';
  import { withFileLock } from ${JSON.stringify(module)};
  for (let round = 0; round < 10; round += 1) {
    withFileLock(${JSON.stringify(lock)}, () => {
      const count = Number(readFileSync(${JSON.stringify(counter)}, 'utf8'));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      writeFileSync(${JSON.stringify(counter)}, String(count + 1));
    });
  }
`;

it('lets one process at a time build, and takes over the lock of a process that has ended', async () => {
  writeFileSync(lock, String(spawnSync(process.execPath, ['--version']).pid));
  writeFileSync(counter, '0');
  const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '--eval', PROGRAM]);
  await Promise.all([run(), run(), run()]);
  expect(readFileSync(counter, 'utf8')).toBe('30');
  expect(readdirSync(folder)).toEqual(['counter']);
});
