import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AbortMemory } from './abort-memory';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => vi.useRealTimers());

it('keeps the aborts of a key, however many aborts another key has', () => {
  const memory = new AbortMemory();
  memory.add('mine', 'a');
  memory.add(undefined, 'b');
  for (let id = 0; id < 10_000; id++) memory.add('hostile', String(id));
  expect([memory.remove('hostile', '0'), memory.remove('hostile', '9999')]).toEqual([false, true]);
  expect([memory.remove('theirs', 'a'), memory.remove('mine', 'a'), memory.remove('mine', 'a')]).toEqual([
    false,
    true,
    false,
  ]);
  expect(memory.remove(undefined, 'b')).toBe(true);
});

it('forgets an abort after a minute, and again later if it is repeated', () => {
  const memory = new AbortMemory();
  memory.add('mine', 'a');
  memory.add('mine', 'b');
  vi.advanceTimersByTime(40_000);
  memory.add('mine', 'a');
  vi.advanceTimersByTime(40_000);
  expect([memory.remove('mine', 'a'), memory.remove('mine', 'b')]).toEqual([true, false]);
});
