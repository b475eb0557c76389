import { expect, it } from 'vitest';
import { SharedReads } from './shared-reads';

it('shares the reply of a read with the callers of the same key', async () => {
  const reads = new SharedReads<string>(Infinity);
  let calls = 0;
  const read = (key: string) => reads.get(key, async () => `${key}${(calls += 1)}`);
  expect(await Promise.all([read('a'), read('a'), read('b')])).toEqual(['a1', 'a1', 'b2']);
  expect(await read('a')).toBe('a1');
});

it('reads again after its time', async () => {
  const reads = new SharedReads<number>(0);
  let calls = 0;
  const read = () => reads.get('a', async () => (calls += 1));
  expect([await read(), await read()]).toEqual([1, 2]);
});
