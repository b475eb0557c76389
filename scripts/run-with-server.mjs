// Tests with a server program of another version. Only Node's own modules.
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { runTests } from './vitest.mjs';

/**
 * Runs test files with `path` in place of the program `name`, since tests use the first such program on PATH.
 * @returns the exit status
 */
export function runWithServer(name, path, files, environment) {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-server-'));
  symlinkSync(resolve(path), join(folder, name));
  const PATH = `${folder}${delimiter}${process.env.PATH}`;
  const status = runTests(files, { environment: { ...environment, PATH } });
  rmSync(folder, { recursive: true });
  return status;
}
