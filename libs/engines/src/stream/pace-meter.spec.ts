import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PaceMeter, type EngineMemory } from './pace-meter';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('measures the rate from the first event on, and the silence since the last', () => {
  const meter = new PaceMeter({});
  vi.advanceTimersByTime(5_000);
  meter.note(1, 1);
  vi.advanceTimersByTime(2_000);
  meter.note(65, 64);
  vi.advanceTimersByTime(500);
  expect(meter.pace).toEqual({ interval: 64, tokensPerSecond: 32 });
  expect(meter.silentMs).toBe(500);
});

it('takes the pace of earlier streams before the second event, else the interval that was asked for', () => {
  const memory: EngineMemory = {};
  expect(new PaceMeter(memory, 64).pace).toEqual({ interval: 64 });
  const first = new PaceMeter(memory);
  first.note(1, 1);
  vi.advanceTimersByTime(1_000);
  first.note(11, 10);
  first.end();
  expect(new PaceMeter(memory, 64).pace).toEqual({ interval: 10, tokensPerSecond: 10 });
});
