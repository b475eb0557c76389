import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { StallWatch } from './stall-watch';

beforeEach(() => vi.useFakeTimers({ toFake: ['performance', 'setInterval'] }));
afterEach(() => vi.useRealTimers());

/** Stops the process like SIGSTOP: time passes, and no timer runs. */
function standStill(durationMs: number): void {
  vi.setSystemTime(0);
  const now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => now + durationMs);
}

it('treats messages before the answer to a ping as queued for the whole stall', async () => {
  const pings: (() => void)[] = [];
  const watch = new StallWatch(() => new Promise((resolve) => pings.push(resolve)));
  expect(watch.queuedMs()).toBe(0);
  vi.advanceTimersByTime(10_000);
  expect(watch.queuedMs()).toBe(0);
  standStill(7_000);
  expect(watch.queuedMs()).toBeGreaterThanOrEqual(7_000);
  expect(watch.queuedMs()).toBeGreaterThanOrEqual(7_000);
  expect(pings).toHaveLength(1);
  standStill(2_000);
  expect(watch.queuedMs()).toBeGreaterThanOrEqual(9_000);
  // The answer to the first ping comes before messages of the second stall, and behind older ones.
  pings[0]!();
  await vi.waitFor(() => expect(watch.queuedMs()).toBe(2_000));
  pings[1]!();
  await vi.waitFor(() => expect(watch.queuedMs()).toBe(0));
  watch.stop();
});
