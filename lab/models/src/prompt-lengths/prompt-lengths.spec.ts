import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RandomStream } from '../lengths';
import { expectedLongest, rememberLength, WINDOW_SAMPLES, type PromptLengths } from './prompt-lengths';

const remember = (lengths: readonly number[], isAtCap = false): PromptLengths | undefined =>
  lengths.reduce<PromptLengths | undefined>((known, tokens) => rememberLength(known, tokens, isAtCap), undefined);

describe('what is remembered of the lengths of a prompt', () => {
  it('is their exact mean and deviation up to the window', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 1_000_000 }), { minLength: 1, maxLength: 64 }), (lengths) => {
        const logs = lengths.map((tokens) => Math.log(tokens));
        const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
        const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / logs.length;
        const known = remember(lengths)!;
        expect(known.samples).toBe(lengths.length);
        expect(known.meanLog).toBeCloseTo(mean, 6);
        expect(known.deviationLog).toBeCloseTo(Math.sqrt(variance), 5);
      }),
    );
  });

  it('follows a prompt that changes, and forgets what was long ago', () => {
    const long = Array.from({ length: 10 * WINDOW_SAMPLES }, () => 8_000);
    const known = remember([...Array.from({ length: 100 }, () => 50), ...long])!;
    expect(Math.exp(known.meanLog)).toBeGreaterThan(7_900);
    expect(known.samples).toBe(WINDOW_SAMPLES);
  });

  it('expects about the longest of a group', () => {
    const random = new RandomStream('prompt-lengths');
    const draw = (): number => Math.exp(7 + 0.4 * random.normal());
    const known = remember(Array.from({ length: 64 }, draw))!;
    const longest = Array.from({ length: 500 }, () => Math.max(...Array.from({ length: 16 }, draw)));
    const mean = longest.reduce((sum, tokens) => sum + tokens, 0) / longest.length;
    expect(expectedLongest(known, 16, 100_000) / mean).toBeGreaterThan(0.75);
    expect(expectedLongest(known, 16, 100_000) / mean).toBeLessThan(1.5);
  });

  it('expects the budget where one of the group will reach it, and never more', () => {
    expect(expectedLongest(remember([4_096, 4_096], true)!, 8, 32_768)).toBe(32_768);
    expect(expectedLongest(remember([30_000, 40_000])!, 64, 32_768)).toBe(32_768);
    expect(expectedLongest(remember([100])!, 1, 32_768)).toBe(100);
  });
});
