import { BroomwagonError } from '@broomwagon/contracts';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FailureLimit } from './failure-limit';

const [failed, busy] = [
  new BroomwagonError('ENGINE_ERROR', 'failed'),
  new BroomwagonError('ENGINE_BUSY', 'full', { retryAfterMs: 7_000 }),
];
const [a, restartedA, b, c] = [
  { serverId: 'a', epoch: 'e1' },
  { serverId: 'a', epoch: 'e2' },
  { serverId: 'b', epoch: 'e1' },
  { serverId: 'c', epoch: 'e1' },
];
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

const limit = () =>
  new FailureLimit({
    maxEngineFailures: 3,
    noServerDeadlineMs: 60_000,
    engineFailurePauseMs: 100,
    engineFailureDeadlineMs: 1_000,
  });

it('ends a response that different servers, or restarts of one, fail in a row, unless its tokens increase', () => {
  for (const third of [c, restartedA]) {
    const limited = limit();
    expect(limited.pauseAfter(failed, a)).toBe(0);
    expect(limited.pauseAfter(undefined, b)).toBeGreaterThan(0);
    expect(limited.pauseAfter(failed, third)).toBeUndefined();
  }
  const limited = limit();
  for (const server of [a, b, c, a, b, c]) {
    limited.clear();
    expect(limited.pauseAfter(failed, server)).toBe(0);
  }
});

it('repeats failures of the same server with growing pauses, until their sum is over', () => {
  const limited = limit();
  const pauses: number[] = [];
  for (let pause = limited.pauseAfter(failed, a); pause !== undefined; pause = limited.pauseAfter(failed, a)) {
    vi.advanceTimersByTime(3_600_000);
    pauses.push(pause);
  }
  expect(pauses.slice(0, 2)).toEqual([0, expect.toSatisfy((pause: number) => pause >= 50 && pause <= 100)]);
  expect(pauses.every((pause, index) => index === 0 || pause >= pauses[index - 1]!)).toBe(true);
  expect(pauses.length).toBeGreaterThan(3);
  expect(pauses.length).toBeLessThan(7);
});

it('takes failures while most servers fail other requests as no evidence, until the sum of the pauses is over', () => {
  const limited = limit();
  const all = { mostServersFail: true };
  for (const server of [a, b, c]) expect(limited.pauseAfter(failed, server, all)).toBeDefined();
  expect(limited.pauseAfter(failed, a)).toBeDefined();
  limited.clear();
  const starts = Array.from({ length: 9 }, (_, index) => ({ serverId: `s${index}`, epoch: 'e1' }));
  expect(starts.map((start) => limited.pauseAfter(failed, start, all)).at(-1)).toBeUndefined();
});

it('calls no start of an engine again that has answered in a wrong dialect', () => {
  const wrong = new BroomwagonError('ENGINE_PROTOCOL', 'compressed');
  const limited = limit();
  expect(limited.pauseAfter(wrong, a)).toBe(0);
  expect([restartedA, b].map((lease) => limited.refusesWrong(lease))).toEqual([false, false]);
  expect(limited.pauseAfter(failed, b)).toBeGreaterThan(0);
  expect(limited.failedServers).toEqual(['a', 'b']);
  expect(limited.refusesWrong(a)).toBe(true);
  expect([limited.failedServers, limited.excludedServers]).toEqual([['a'], undefined]);
  expect(limited.refusesWrong(a)).toBe(true);
  expect(limited.excludedServers).toEqual(['a']);
  const none = new BroomwagonError('NO_SERVER_AVAILABLE', 'none fits');
  expect(limited.explain({ failed: 'refused', error: none })).toBe(wrong);
  limited.clear();
  expect(limited.pauseAfter(wrong, a, { hasProgress: true })).toBe(0);
  expect(limited.refusesWrong(a)).toBe(false);
  expect(limited.explain({ failed: 'refused', error: none })).toBe(none);
});

it('waits for other servers after a wrong answer until the deadline, and looks for new starts meanwhile', () => {
  const wrong = new BroomwagonError('ENGINE_PROTOCOL', 'compressed');
  const none = { error: new BroomwagonError('NO_SERVER_AVAILABLE', 'none ready') };
  const limited = limit();
  expect(limited.waitsOn({ failed: 'no-server', ...none })).toBe(false);
  limited.pauseAfter(wrong, a);
  expect(limited.refusesWrong(a)).toBe(true);
  expect(limited.waitsOn({ failed: 'refused', ...none })).toBe(false);
  expect(limited.waitsOn({ failed: 'no-server', error: new BroomwagonError('WAIT_TIMEOUT', 'full') })).toBe(false);
  expect(limited.waitsOn({ failed: 'no-server', ...none })).toBe(true);
  expect([limited.failedServers, limited.excludedServers]).toEqual([['a'], undefined]);
  vi.advanceTimersByTime(60_000);
  expect([restartedA, a].map((lease) => limited.refusesWrong(lease))).toEqual([false, true]);
  expect(limited.waitsOn({ failed: 'no-server', ...none })).toBe(false);
  expect(limited.explain({ failed: 'no-server', ...none })).toBe(wrong);
});

it('takes calls that were not served as no evidence, until a deadline that a pause of the pool postpones', () => {
  const limited = limit();
  for (let call = 0; call < 9; call += 1) {
    for (const server of [a, b, c]) expect(limited.pauseAfter(busy, server)).toBeLessThanOrEqual(5_000);
    vi.advanceTimersByTime(5_000);
  }
  expect(limited.failedServers).toEqual(['a', 'b', 'c']);
  limited.deadline!.endsAtMs += 60_000;
  vi.advanceTimersByTime(60_000);
  expect(limited.pauseAfter(busy, a)).toBeDefined();
  expect(limited.pauseAfter(failed, b)).toBeDefined();
  vi.advanceTimersByTime(60_000);
  expect(limited.pauseAfter(busy, a)).toBeUndefined();
  expect(limited.endWith(busy)).toMatchObject({ error: { code: 'ENGINE_BUSY', retryAfterMs: 7_000 } });
});
