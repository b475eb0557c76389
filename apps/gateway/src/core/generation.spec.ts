import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Generation } from './generation';
import { INPUT } from './generation.fixture';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

it('is watched for a limited time from the first token of its client, and without limit for 0', () => {
  const generation = new Generation('g', '', INPUT);
  const isWatched = (ageMs: number): boolean => generation.isWatchedForLess(ageMs);
  expect(isWatched(2_000)).toBe(false);
  const stopListening = generation.onChange(() => undefined);
  vi.advanceTimersByTime(60_000);
  expect(isWatched(2_000)).toBe(true);
  generation.firstTokenAt = performance.now();
  vi.advanceTimersByTime(1_999);
  expect(isWatched(2_000)).toBe(true);
  vi.advanceTimersByTime(1);
  expect([isWatched(2_000), isWatched(0)]).toEqual([false, true]);
  stopListening();
  expect(isWatched(0)).toBe(false);
});
