import { expect, it } from 'vitest';
import { noteClock, nowMs } from './server-clock';

it('follows the clock of the server when the clock of the browser is off', () => {
  const reply = (aheadMs: number): Response =>
    new Response(null, { headers: { Date: new Date(Date.now() + aheadMs).toUTCString() } });
  const aheadMs = (): number => nowMs() - Date.now();
  noteClock(reply(-300_000));
  expect(Math.abs(aheadMs() + 300_000)).toBeLessThan(5_000);
  noteClock(new Response());
  expect(aheadMs()).toBeLessThan(-200_000);
  noteClock(reply(1_000));
  expect(Math.abs(aheadMs())).toBeLessThan(100);
});
