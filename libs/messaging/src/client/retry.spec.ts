import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { BroomwagonError } from '@broomwagon/contracts';
import { retryDelayMs, withRetry } from './retry';

const busy = new BroomwagonError('OVERLOADED', 'busy');

describe('retry', () => {
  it('property: the pause lies between the requested pause and the requested pause plus the cap', () => {
    fc.assert(
      fc.property(fc.nat(200), fc.nat(60_000), fc.double({ min: 0, max: 0.999, noNaN: true }), (attempt, after, x) => {
        const pause = retryDelayMs(attempt, after, { random: () => x, baseDelayMs: 10, maxDelayMs: 500 });
        expect(pause).toBeGreaterThanOrEqual(after);
        expect(pause).toBeLessThan(after + 500);
      }),
    );
  });

  it('throws the last error when the next pause would pass the deadline', async () => {
    let attempts = 0;
    // Each attempt takes 40 ms; the second ends in time, and the pause after it would not.
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => 40 * attempts);
    const failing = (): Promise<never> => {
      attempts++;
      return Promise.reject(new BroomwagonError('OVERLOADED', 'busy', { retryAfterMs: 30 }));
    };
    await expect(withRetry(failing, { deadlineMs: 100, random: () => 0 })).rejects.toThrow('busy');
    clock.mockRestore();
    expect(attempts).toBe(2);
  });

  it('stops when it is aborted, with the error that was being retried', async () => {
    const abort = new AbortController();
    const retried = withRetry(() => Promise.reject(busy), {
      deadlineMs: 60_000,
      baseDelayMs: 30_000,
      signal: abort.signal,
      random: () => 0.9,
    });
    const outcome = expect(retried).rejects.toBe(busy);
    abort.abort();
    await outcome;
  });
});
