import { expect, it, vi } from 'vitest';
import { Coalescer } from './coalescer';

const BATCH_SIZE = 128;

it('puts everything of one event-loop turn into one call, answers in order', async () => {
  const call = vi.fn(async (items: number[]) => items.map((item) => item * 2));
  const coalescer = new Coalescer(call, BATCH_SIZE);
  expect(await Promise.all([1, 2, 3].map((item) => coalescer.add(item)))).toEqual([2, 4, 6]);
  expect(await coalescer.add(4)).toBe(8);
  expect(call.mock.calls).toEqual([[[1, 2, 3]], [[4]]]);
});

it('makes calls of at most 128 items, at most two at once', async () => {
  let underWay = 0;
  let most = 0;
  const sizes: number[] = [];
  const coalescer = new Coalescer(async (items: number[]) => {
    sizes.push(items.length);
    most = Math.max(most, ++underWay);
    await new Promise((resolve) => setImmediate(resolve));
    underWay--;
    return items;
  }, BATCH_SIZE);
  const items = Array.from({ length: 300 }, (_, index) => index);
  expect(await Promise.all(items.map((item) => coalescer.add(item)))).toEqual(items);
  expect(sizes).toEqual([128, 128, 44]);
  expect(most).toBe(2);
  expect(coalescer.isIdle).toBe(true);
});

it('fails the items of a failed call only', async () => {
  const coalescer = new Coalescer(async (items: string[]) => {
    if (items.includes('bad')) throw new Error('no');
    return items;
  }, 2);
  const settled = await Promise.allSettled(['bad', 'b', 'c'].map((item) => coalescer.add(item)));
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
});
