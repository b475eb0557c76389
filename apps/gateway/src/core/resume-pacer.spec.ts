import { expect, it, vi } from 'vitest';
import { ResumePacer } from './resume-pacer';

const running = () => new AbortController().signal;
let waiting = 0;
const createPacer = (limit: number, deadlineMs = 600_000, placeMs = 600_000) =>
  new ResumePacer(limit, deadlineMs, placeMs, (count) => (waiting = count));

it('lets a limited number of calls of an engine begin, and the next one when a call has left', async () => {
  const pacer = createPacer(2);
  const [first] = await Promise.all([pacer.enter('a', running()), pacer.enter('a', running())]);
  const begun: string[] = [];
  const later = ['third', 'fourth'].map(async (name) => {
    const leave = await pacer.enter('a', running());
    begun.push(name);
    return leave;
  });
  await pacer.enter('b', running());
  expect([begun, waiting]).toEqual([[], 2]);
  first();
  first();
  (await later[0]!)();
  await later[1];
  expect([begun, waiting]).toEqual([['third', 'fourth'], 0]);
});

it('lets a stopped call leave, whether it waits or gets its turn at that moment', async () => {
  const pacer = createPacer(1);
  const leave = await pacer.enter('a', running());
  const [stopped, stoppedAtItsTurn] = [new AbortController(), new AbortController()];
  const waits = pacer.enter('a', stopped.signal);
  const turns = pacer.enter('a', stoppedAtItsTurn.signal);
  stopped.abort();
  (await waits)();
  expect(waiting).toBe(1);
  stoppedAtItsTurn.abort();
  leave();
  (await turns)();
  const aborted = await pacer.enter('a', stopped.signal);
  aborted();
  // No call holds the place: the next call begins.
  await pacer.enter('a', running());
  expect(waiting).toBe(0);
});

it('lets a call begin at the deadline, which takes no place of waiting calls', async () => {
  vi.useFakeTimers();
  try {
    const pacer = createPacer(1, 1_000);
    const leave = await pacer.enter('a', running());
    const late = pacer.enter('a', running());
    await vi.advanceTimersByTimeAsync(500);
    const begun: string[] = [];
    const next = pacer.enter('a', running()).then((leaveNext) => {
      begun.push('next');
      return leaveNext;
    });
    await vi.advanceTimersByTimeAsync(499);
    expect(waiting).toBe(2);
    await vi.advanceTimersByTimeAsync(1);
    (await late)();
    expect([waiting, begun]).toEqual([1, []]);
    // Other specs in this process may have timers too.
    const timers = vi.getTimerCount();
    leave();
    (await next)();
    expect([waiting, vi.getTimerCount()]).toEqual([0, timers - 2]);
  } finally {
    vi.useRealTimers();
  }
});

it('lets the next call begin when a call has had no token for too long', async () => {
  vi.useFakeTimers();
  try {
    const pacer = createPacer(1, 600_000, 1_000);
    const leave = await pacer.enter('a', running());
    const next = pacer.enter('a', running());
    await vi.advanceTimersByTimeAsync(999);
    expect(waiting).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    await next;
    // The first call has no place any more.
    leave();
    const last = pacer.enter('a', running());
    await vi.advanceTimersByTimeAsync(999);
    expect(waiting).toBe(1);
    (await next)();
    await last;
    expect(waiting).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
