import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { slowStartCapacity } from './slow-start';

describe('slow start', () => {
  it('grows from a fraction to all of the capacity', () => {
    const at = (ageMs: number) => slowStartCapacity({ maxInflight: 100, ageMs, slowStartMs: 1_000, fraction: 0.1 });
    expect([0, 500, 999, 1_000, 5_000].map(at)).toEqual([10, 55, 99, 100, 100]);
  });

  it('is never below one lease nor above the capacity, and never falls with time', () => {
    const start = fc.record({
      maxInflight: fc.integer({ min: 1, max: 1_000_000 }),
      ageMs: fc.integer({ min: -10, max: 100_000 }),
      slowStartMs: fc.integer({ min: 0, max: 60_000 }),
      fraction: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(start, fc.nat(10_000), (given, laterMs) => {
        const capacity = slowStartCapacity(given);
        expect(capacity).toBeGreaterThanOrEqual(1);
        expect(capacity).toBeLessThanOrEqual(given.maxInflight);
        expect(slowStartCapacity({ ...given, ageMs: given.ageMs + laterMs })).toBeGreaterThanOrEqual(capacity);
      }),
    );
  });
});
