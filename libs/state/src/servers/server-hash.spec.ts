import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LUA_ROOT } from '../library/function-runner';

/** Fields of the hash that are not in the index. */
const NO_LABELS = /'(turn|ring)'/;
const DIRECT_WRITE = /redis\.call\('(HSET|HSETNX|HDEL|HINCRBY|DEL|UNLINK)', tx\.key:server\(/;

it('changes the hash of a server only through the functions that keep its index', () => {
  const files = readdirSync(LUA_ROOT, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.lua') && !file.endsWith('server-hash.lua'),
  );
  const direct = files.flatMap((file) =>
    readFileSync(join(LUA_ROOT, file), 'utf8')
      .split('\n')
      .filter((line) => DIRECT_WRITE.test(line) && !NO_LABELS.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  expect(files.length).toBeGreaterThan(50);
  expect(direct).toEqual([]);
});
