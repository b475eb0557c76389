import { BroomwagonError } from '@broomwagon/contracts';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FailureLimit } from './failure-limit';

const [failed, unreachable] = [
  new BroomwagonError('ENGINE_ERROR', 'failed'),
  new BroomwagonError('ENGINE_UNREACHABLE', 'no connection'),
];
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

const limit = () => new FailureLimit({ maxEngineFailures: 3, noServerDeadlineMs: 1_000 });

it('counts failures, however long a pause of the pool, or an engine, lasts between them', () => {
  const limited = limit();
  expect(limited.isReached(failed, 5)).toBe(false);
  vi.advanceTimersByTime(3_600_000);
  expect(limited.isReached(undefined, 5_000)).toBe(false);
  expect(limited.isReached(failed, 5_000)).toBe(true);
});

it('limits the time of calls that reach no engine, without the waits between them', () => {
  const limited = limit();
  for (let call = 0; call < 9; call += 1) {
    expect(limited.isReached(unreachable, 100)).toBe(false);
    vi.advanceTimersByTime(10_000);
  }
  expect(limited.isReached(failed, 5_000)).toBe(false);
  for (let call = 0; call < 10; call += 1) expect(limited.isReached(unreachable, 100)).toBe(false);
  expect(limited.isReached(unreachable, 100)).toBe(true);
});
