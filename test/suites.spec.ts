import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
// @ts-expect-error: a script without types
import * as untyped from '../scripts/suites.mjs';

interface Suite {
  name: string;
  script: string;
  paths: string[];
}
const { concernedSuites, SUITES } = untyped as { concernedSuites(files: string[]): Suite[]; SUITES: Suite[] };

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
const files = execFileSync('git', ['ls-files'], { encoding: 'utf8' }).split('\n');

/** Scripts that run parts of suites, or several suites, or that only a person runs. */
const NO_SUITES = new Set([
  'test:one',
  'test:unit',
  'test:services',
  'test:system',
  'test:busy',
  'test:all',
  'test:changed',
]);

describe('the table of suites', () => {
  it('has every test script of package.json once', () => {
    const expected = Object.keys(scripts).filter((name) => /^test\b/.test(name) && !NO_SUITES.has(name));
    expect(SUITES.map(({ script }) => script).toSorted()).toEqual(expected.toSorted());
  });

  it('names only files and folders that exist', () => {
    const prefixes = SUITES.flatMap(({ paths }) => paths);
    expect(prefixes.filter((prefix) => !files.some((file) => file.startsWith(prefix)))).toEqual([]);
  });

  it('concerns a change of the Lua transitions with the suites of other stores', () => {
    const names = concernedSuites(['libs/state/src/leases/acquire.lua']).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['test', 'faults', 'cluster', 'valkey']));
    expect(names).not.toContain('browser');
  });

  it('concerns a change of the lock file with every suite', () => {
    expect(concernedSuites(['package-lock.json'])).toEqual(SUITES);
  });

  it('is all that the workflow of the forge runs', () => {
    const { jobs } = parse(readFileSync('.github/workflows/tests.yml', 'utf8')) as {
      jobs: { suite: { strategy: { matrix: { suite: string[] } } } };
    };
    const names = SUITES.map(({ name }) => name);
    expect(names).toEqual(['test', ...jobs.suite.strategy.matrix.suite]);
  });
});
