import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { median, medianRatio, percentile, significant, summarizeLatencies } from './arithmetic';

const values = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 200 });

describe('the arithmetic of a benchmark', () => {
  it('takes the middle value as the median, or the mean of the two middle values', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([])).toBeNaN();
  });

  it('takes the nearest rank as a percentile', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => index + 1);
    expect([0, 0.5, 0.95, 0.99, 1].map((share) => percentile(hundred, share))).toEqual([1, 50, 95, 99, 100]);
    expect(percentile([7], 0.99)).toBe(7);
    expect(percentile([], 0.5)).toBeNaN();
  });

  it('takes the smallest value that the given share of values does not exceed as a percentile', () => {
    fc.assert(
      fc.property(values, fc.double({ min: 0.01, max: 1, noNaN: true }), (all, share) => {
        const sorted = [...all].sort((one, other) => one - other);
        const found = percentile(sorted, share);
        expect(sorted.filter((value) => value <= found).length).toBeGreaterThanOrEqual(share * all.length);
        expect(sorted.filter((value) => value < found).length).toBeLessThan(Math.max(1, share * all.length));
      }),
    );
  });

  it('sorts latencies as numbers', () => {
    expect(summarizeLatencies([10, 9, 100])).toEqual({ p50Ms: 10, p95Ms: 100, p99Ms: 100 });
  });

  it('takes ratios within a round, so that one slow round does not count', () => {
    expect(medianRatio([50, 5, 50], [100, 10, 100])).toBe(0.5);
    // The ratio of the medians would be 50/100 here, too, but not when only the rounds differ in speed.
    expect(medianRatio([10, 20, 30], [10, 40, 10])).toBe(1);
  });

  it('rounds to significant digits', () => {
    expect(significant(0.0123456, 3)).toBe(0.0123);
    expect(significant(123_456, 3)).toBe(123_000);
  });
});
