import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { adaptiveLimit, type EnginePressure } from './adaptive-limit';

describe('adaptive concurrency', () => {
  const calm: EnginePressure = { limit: 50, maxInflight: 100, inflight: 50, waiting: 0, kvUse: 0.5, newPreemptions: 0 };

  it('cuts the leases in flight on preemptions and on a full KV cache', () => {
    expect(adaptiveLimit({ ...calm, newPreemptions: 1 })).toBe(37);
    expect(adaptiveLimit({ ...calm, kvUse: 0.95 })).toBe(37);
    expect(adaptiveLimit({ ...calm, limit: 100, inflight: 20, newPreemptions: 3 })).toBe(15);
  });

  it('grows while the limit is used and the engine has air, and stays in between', () => {
    expect(adaptiveLimit(calm)).toBe(52);
    expect(adaptiveLimit({ ...calm, inflight: 0 })).toBe(52);
    expect(adaptiveLimit({ ...calm, inflight: 10 })).toBe(50);
    expect(adaptiveLimit({ ...calm, kvUse: 0.85 })).toBe(50);
    expect(adaptiveLimit({ ...calm, waiting: 2 })).toBe(50);
    expect(adaptiveLimit({ ...calm, limit: 99, inflight: 99 })).toBe(100);
  });

  it('stays between one lease and the capacity whatever the engine reports, and recovers when it is idle', () => {
    const pressure = fc.record({
      limit: fc.integer({ min: 1, max: 10_000 }),
      maxInflight: fc.integer({ min: 1, max: 10_000 }),
      inflight: fc.nat(20_000),
      waiting: fc.nat(100),
      kvUse: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
      newPreemptions: fc.nat(3),
    });
    fc.assert(
      fc.property(pressure, (given) => {
        const limit = adaptiveLimit(given);
        expect(limit).toBeGreaterThanOrEqual(1);
        expect(limit).toBeLessThanOrEqual(given.maxInflight);
        expect(Number.isInteger(limit)).toBe(true);
      }),
    );
    let limit = 1;
    for (let step = 0; step < 60; step++) limit = adaptiveLimit({ ...calm, limit, inflight: 0 });
    expect(limit).toBe(100);
  });
});
