import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { connectRedis } from '../redis';
import { buildLibrary } from './function-library';
import { loadLibrary, theLibrary } from './function-runner';

const redis = connectRedis({ url: testRedisUrl() });
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'broomwagon-library-'));
  return () => rmSync(folder, { recursive: true });
});

afterAll(() => redis.quit());

function write(file: string, ...lines: string[]): void {
  writeFileSync(join(folder, file), `${lines.join('\n')}\n`);
}

it('turns the flags of the header into flags of the Redis function', () => {
  const load = (header: string) => {
    write('flagged.lua', '--[[ One.', `${header} ]]`, 'return function() return 1 end -- Flags: no-writes');
    return buildLibrary(folder);
  };
  expect(load('Flags: allow-oom').text).toContain("{ 'allow-oom' }");
  expect(load('Flags: no-writes').text).toContain("{ 'no-writes' }");
  const { text, functions } = load('Errors: none.');
  expect(text).toContain("('flagged', {}, ");
  expect([...functions.values()].map(({ isRefusedWhenFull }) => isRefusedWhenFull)).toEqual([true]);
  expect(() => load('Flags: allow-oon')).toThrow('flagged.lua: no flag allow-oon');
});

it('refuses two modules of one name, and a module that returns something else', () => {
  write('one-table.lua', 'local OneTable = {}', 'return OneTable');
  expect(() => buildLibrary(folder)).not.toThrow();
  write('other.lua', 'local Something = {}', 'return Something');
  expect(() => buildLibrary(folder)).toThrow('other.lua: a module must end with: return Other');
});

it('names itself and its functions by its text, so that two versions live side by side', () => {
  write('look.lua', '--[[ Looks. ]]', 'return function() return 1 end');
  const first = buildLibrary(folder);
  write('look.lua', '--[[ Looks. ]]', 'return function() return 2 end');
  const second = buildLibrary(folder);
  expect(first.name).not.toBe(second.name);
  expect([...first.functions.values()][0]!.name).not.toBe([...second.functions.values()][0]!.name);
});

it('finds the file and line of the source for an error line of Redis', () => {
  write('tx.lua', 'local Tx = {}', 'function Tx.open() return {} end', 'return Tx');
  write('fail.lua', '--[[ Fails. ]]', 'return function()', "  error('here')", 'end');
  const { text, findSource: sourceOf } = buildLibrary(folder);
  const line = text.split('\n').findIndex((one) => one.includes("error('here')")) + 1;
  expect(sourceOf(line)).toBe('fail.lua:3');
});

it('lets a full Redis refuse only transitions that take in new work', () => {
  const refused = [...theLibrary().functions].filter(([, { isRefusedWhenFull }]) => isRefusedWhenFull);
  expect(refused.map(([name]) => name)).toEqual([
    'jobs/configure',
    'leases/acquire',
    'moves/save-plan',
    'payload/put-chunk',
    'payload/put-many',
    'prompts/remember',
    'requests/claim',
    'requests/grant-claims',
    'rounds/open',
    'rounds/submit',
    'snapshots/restore',
    'snapshots/save',
    'trajectories/open',
    'trajectories/record',
  ]);
});

it('is a library that Redis takes, and that may be loaded twice', async () => {
  await loadLibrary(redis);
  await loadLibrary(redis);
  const listed = JSON.stringify(await redis.call('FUNCTION', 'LIST', 'LIBRARYNAME', theLibrary().name));
  expect(listed).toContain(theLibrary().functions.get('leases/acquire')!.name);
  expect(theLibrary().functions.size).toBeGreaterThan(100);
});
