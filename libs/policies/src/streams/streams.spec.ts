import * as fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { estimateUnsent, type StreamPace } from './estimate-unsent';
import { allowedSilenceMs, hasStalled, type Silence } from './silent-stream';

const NUM_RUNS = 200 * inject('runsFactor');
const pace: fc.Arbitrary<StreamPace> = fc.record({
  interval: fc.integer({ min: 1, max: 1_000 }),
  tokensPerSecond: fc.option(fc.double({ min: 0.001, max: 10_000, noNaN: true }), { nil: undefined }),
});
const timeMs = fc.integer({ min: 1, max: 10_000_000 });

describe('tokens that were not sent', () => {
  it('are less than one interval, and grow with the silence', () => {
    fc.assert(
      fc.property(pace, timeMs, timeMs, (stream, silentMs, moreMs) => {
        const lost = estimateUnsent(stream, silentMs);
        expect(Number.isInteger(lost) && lost >= 0 && lost < stream.interval).toBe(true);
        expect(estimateUnsent(stream, silentMs + moreMs)).toBeGreaterThanOrEqual(lost);
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it.each([
    [{ interval: 64, tokensPerSecond: 30 }, 1_000, 30],
    [{ interval: 64, tokensPerSecond: 30 }, 9_000, 63],
    [{ interval: 1, tokensPerSecond: 30 }, 1_000, 0],
    [{ interval: 64 }, 10, 63],
  ])('of %j after %s ms are %s', (stream, silentMs, lost) => expect(estimateUnsent(stream, silentMs)).toBe(lost));
});

describe('a silent stream', () => {
  const silence: fc.Arbitrary<Silence> = fc.record({
    silentMs: timeMs,
    hasTokens: fc.boolean(),
    pace,
    firstTokenTimeoutMs: timeMs,
    stallTimeoutMs: timeMs,
    isEngineAtWork: fc.option(fc.boolean(), { nil: undefined }),
  });

  it('never stalls before its time-out, nor before its next event is due, and always stalls some day', () => {
    fc.assert(
      fc.property(silence, (one) => {
        const { hasTokens, stallTimeoutMs, firstTokenTimeoutMs, silentMs } = one;
        const { interval, tokensPerSecond = Infinity } = one.pace;
        const dueMs = hasTokens ? (1_000 * interval) / tokensPerSecond : 0;
        const timeoutMs = hasTokens ? stallTimeoutMs : firstTokenTimeoutMs;
        if (hasStalled(one)) expect(silentMs).toBeGreaterThanOrEqual(Math.max(timeoutMs, dueMs));
        expect(hasStalled({ ...one, silentMs: 4 * allowedSilenceMs(one) })).toBe(true);
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it('stays stalled when it is silent for longer, and stalls no sooner if its engine is at work', () => {
    fc.assert(
      fc.property(silence, timeMs, (one, moreMs) => {
        if (hasStalled(one)) expect(hasStalled({ ...one, silentMs: one.silentMs + moreMs })).toBe(true);
        if (hasStalled({ ...one, isEngineAtWork: true })) {
          expect(hasStalled({ ...one, isEngineAtWork: false })).toBe(true);
        }
        expect(hasStalled({ ...one, isEngineAtWork: undefined })).toBe(hasStalled({ ...one, isEngineAtWork: false }));
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it('of one token in a second and 64 tokens in an event may be silent for more than two minutes', () => {
    const slow = { hasTokens: true, pace: { interval: 64, tokensPerSecond: 1 } };
    expect(allowedSilenceMs({ ...slow, firstTokenTimeoutMs: 1, stallTimeoutMs: 120_000 })).toBe(256_000);
  });
});
