import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { callSignal } from './deadline';

it('fires with the outer signal, or when the time is over, and reports which', async () => {
  const outer = new AbortController();
  const ended = callSignal(60_000, outer.signal);
  outer.abort(new Error('stop'));
  expect([ended.signal.aborted, ended.isOver(), ended.signal.reason]).toEqual([true, false, new Error('stop')]);
  ended.clear();
  expect(callSignal(60_000, outer.signal).signal.aborted).toBe(true);
  const late = callSignal(1);
  await expect.poll(() => late.signal.aborted).toBe(true);
  expect(late.isOver()).toBe(true);
});

it('leaves nothing behind on a signal that lives longer', () => {
  const outer = new AbortController();
  const before = Object.getOwnPropertySymbols(outer.signal).length;
  for (let call = 0; call < 100; call++) callSignal(60_000, outer.signal).clear();
  expect(getEventListeners(outer.signal, 'abort')).toEqual([]);
  const kept = Object.getOwnPropertySymbols(outer.signal).map((name) => (outer.signal as never)[name] as unknown);
  expect(kept.filter((one) => one instanceof Set && one.size > 0)).toEqual([]);
  expect(Object.getOwnPropertySymbols(outer.signal).length).toBe(before);
});
