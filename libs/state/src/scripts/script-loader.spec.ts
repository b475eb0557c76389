import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, expect, it } from 'vitest';
import { connectRedis } from '../redis';
import { isRefusedWhenFull, loadScript } from './script-loader';
import { LUA_ROOT } from './script-runner';

const redis = connectRedis({ url: testRedisUrl() });
const folder = mkdtempSync(join(tmpdir(), 'broomwagon-scripts-'));

afterAll(async () => {
  await redis.quit();
  rmSync(folder, { recursive: true });
});

function scriptNames(): string[] {
  return readdirSync(LUA_ROOT, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua') && !file.includes('includes'))
    .map((file) => file.slice(0, -'.lua'.length))
    .sort();
}

it('puts includes in place, without the functions and keys that nothing uses', async () => {
  writeFileSync(
    join(folder, 'part.lua'),
    [
      'local key = {',
      "  used = root .. 'used', -- as key.unused was",
      "  unused = root .. 'unused',",
      '}',
      "function key.one(id) return root .. id end -- that one's",
      "function key.other(id) return root .. id end -- that other one's",
      'local function first() return key.used end',
      'local function second() return first() end',
      'local function third()',
      '  return third() or second() -- fourth',
      'end',
      "local function fourth() return key.unused end -- nobody's",
    ].join('\n'),
  );
  const head = '--[[ second, third: only told of ]]\nlocal root = \'r:\'\n--- @include "part"\n';
  writeFileSync(join(folder, 'short.lua'), `${head}return first() .. key.one('x')\n`);
  const short = loadScript(folder, 'short');
  expect(short).toContain('function first');
  for (const gone of ['function second', 'function third', 'function fourth', 'key.other', 'unused =']) {
    expect(short).not.toContain(gone);
  }
  expect(await redis.eval(short, 0)).toBe('r:usedr:x');
  writeFileSync(join(folder, 'dynamic.lua'), `${head}local name = 'unused'\nreturn key[name]\n`);
  expect(await redis.eval(loadScript(folder, 'dynamic'), 0)).toBe('r:unused');
});

it('turns the flags of the header into those of Redis', () => {
  const load = (header: string) => {
    writeFileSync(join(folder, 'flagged.lua'), `--[[ One.\n${header} ]]\nreturn 1 -- Flags: no-writes\n`);
    return loadScript(folder, 'flagged').split('\n', 1)[0];
  };
  expect(load('Flags: allow-oom')).toBe('#!lua flags=allow-oom');
  expect(load('Flags: no-writes')).toBe('#!lua flags=no-writes');
  expect(load('Errors: none.')).toBe('#!lua');
  expect(() => load('Flags: allow-oon')).toThrow('flagged.lua:1: no flag allow-oon');
});

it('lets a full Redis refuse only what takes new work in', () => {
  expect(scriptNames().filter((name) => isRefusedWhenFull(loadScript(LUA_ROOT, name)))).toEqual([
    'checkpoints/restore',
    'checkpoints/save',
    'jobs/configure',
    'moves/save-plan',
    'payload/put-chunk',
    'prompts/remember',
    'requests/claim',
    'requests/grant-claims',
    'rounds/open',
    'rounds/submit',
    'routing/acquire',
    'routing/acquire-plain',
  ]);
});

it('makes scripts that Redis takes, all of them', async () => {
  const names = scriptNames();
  expect(names.length).toBeGreaterThan(50);
  for (const name of names) await redis.script('LOAD', loadScript(LUA_ROOT, name));
});
