import type { StreamPace } from '@broomwagon/policies';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SilenceWatch } from './silence-watch';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const STALL_MS = 1_000;
const FIRST_MS = 4_000;

function watch({
  pace = { interval: 1 } as StreamPace,
  counts = undefined as (() => number | undefined) | undefined,
} = {}) {
  const found: string[] = [];
  const limits = { firstTokenTimeoutMs: FIRST_MS, stallTimeoutMs: STALL_MS, pace: () => pace };
  const countEngineTokens = counts && (() => Promise.resolve(counts()));
  const silence = new SilenceWatch({ ...limits, countEngineTokens }, ({ code, message }) => found.push(code, message));
  return { silence, found };
}
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

it('ends a stream that is silent for the time-out, if the engine has no count', async () => {
  const { silence, found } = watch();
  silence.heard(true);
  await pass(STALL_MS - 1);
  expect(found).toEqual([]);
  await pass(1);
  expect(found).toEqual(['ENGINE_STALLED', 'The engine stopped sending for 1000 ms']);
});

it('waits for some events at the pace of the stream', async () => {
  const { silence, found } = watch({ pace: { interval: 64, tokensPerSecond: 64 } });
  silence.heard(true);
  await pass(3_900);
  expect(found).toEqual([]);
  await pass(100);
  expect(found[0]).toBe('ENGINE_STALLED');
});

it('ends a stream at its time-out if the count of the engine stays', async () => {
  const { silence, found } = watch({ counts: () => 7 });
  silence.heard(true);
  await pass(STALL_MS);
  expect(found[1]).toContain('its count of tokens stays');
});

it.each([
  [true, STALL_MS],
  [false, FIRST_MS],
])('gives a stream more time while the engine generates, but not for ever (had a token: %s)', async (hadToken, ms) => {
  let count = 0;
  const { silence, found } = watch({ counts: () => (count += 1) });
  if (hadToken) silence.heard(true);
  await pass(4 * ms - 1);
  expect(found).toEqual([]);
  await pass(1);
  expect(found[1]).toContain('its count of tokens grows');
});

it('reads no count while events come, nor long before a deadline', async () => {
  let reads = 0;
  const { silence } = watch({ counts: () => (reads += 1) });
  silence.heard(true);
  for (let parts = 0; parts < 12; parts++) {
    await pass(STALL_MS / 4);
    if (parts % 2 === 1) silence.heard(true);
  }
  expect(reads).toBe(0);
  silence.stop();
});
