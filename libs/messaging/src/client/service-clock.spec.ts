import { expect, it } from 'vitest';
import { ServiceClock } from './service-clock';

it('follows the clock of the services after one reply, whatever the own clock shows', () => {
  const clock = new ServiceClock();
  const nowMs = performance.now();
  expect(Math.abs(clock.toServiceTime(nowMs - 5_000) - (Date.now() - 5_000))).toBeLessThan(1_000);
  const serviceMs = Date.now() + 3_600_000;
  clock.correct(serviceMs, nowMs - 200, nowMs);
  expect(Math.abs(clock.toServiceTime(nowMs) - serviceMs - 100)).toBeLessThan(1_000);
});
