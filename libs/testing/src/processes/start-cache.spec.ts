import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

const HOOK = join('libs', 'testing', 'src', 'processes', 'start-cache.js');
const MAIN = join('apps', 'one', 'src', 'main.js');
const OTHER = join('apps', 'one', 'src', 'other.js');

/** A folder like dist/ with one program. */
let built: string;
beforeEach(() => {
  built = realpathSync(mkdtempSync(join(tmpdir(), 'broomwagon-starts-')));
  cpSync(join('dist', HOOK), join(built, HOOK));
  mkdirSync(join(built, 'apps', 'one', 'src'), { recursive: true });
  writeFileSync(
    join(built, MAIN),
    `const other = require('./other');
    console.log(require.main === module, __filename, other.text, other.at());
    import('./module.mjs').then(({ text }) => console.log(text, require.resolve('./other')));
    try { require('missing-package') } catch ({ code }) { console.log(code) }`,
  );
  writeFileSync(
    join(built, OTHER),
    `exports.text = 'före';\nexports.at = () => new Error().stack.split('\\n')[1].trim();`,
  );
  writeFileSync(join(built, 'apps', 'one', 'src', 'module.mjs'), `export const text = 'module'`);
});
afterEach(() => rmSync(built, { recursive: true }));

const run = (options: string[] = [], args: string[] = []) =>
  execFileSync(process.execPath, [...options, join(built, MAIN), ...args], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
  });
const runCached = (...args: string[]) => run(['--require', join(built, HOOK)], args);

it('a program prints the same without the cache of starts, while it is written, and from it', () => {
  const printed = run();
  expect(printed).toContain(`other.js:2:`);
  expect([runCached(), runCached()]).toEqual([printed, printed]);
  expect(readdirSync(join(built, '.starts'))).toHaveLength(1);
});

it('a module comes from the cache of starts until size or time of its file differ', () => {
  const setSeconds = (seconds: number) => utimesSync(join(built, OTHER), seconds, seconds);
  setSeconds(1_000);
  const printed = runCached();
  writeFileSync(
    join(built, OTHER),
    `exports.text = 'nåch';\nexports.at = () => new Error().stack.split('\\n')[1].trim();`,
  );
  setSeconds(1_000);
  expect(runCached()).toBe(printed);
  setSeconds(2_000);
  expect(runCached()).toBe(printed.replace('före', 'nåch'));
});

it('the cache of a short run is replaced when another run loads many more modules', () => {
  const count = 150;
  for (let index = 0; index < count; index += 1)
    writeFileSync(join(built, `apps/one/src/more-${index}.js`), '// empty');
  appendFileSync(
    join(built, MAIN),
    `;for (let index = 0; index < process.argv[2]; index += 1) require('./more-' + index)`,
  );
  const bytesOfCache = () =>
    readdirSync(join(built, '.starts')).map((name) => statSync(join(built, '.starts', name)).size);
  runCached();
  const [short] = bytesOfCache();
  runCached(String(count));
  expect(bytesOfCache()).toEqual([]);
  runCached(String(count));
  const [long] = bytesOfCache();
  expect(long).toBeGreaterThan(short!);
  runCached();
  expect(bytesOfCache()).toEqual([long]);
});
