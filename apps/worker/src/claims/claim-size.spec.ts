import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClaimSize, MAX_CLAIM_SIZE, MIN_CLAIM_SIZE } from './claim-size';

describe('ClaimSize', () => {
  it('never asks for more than there is room for, nor for more than 64', () => {
    const steps = fc.array(
      fc.record({ free: fc.integer({ min: 1, max: 500 }), part: fc.double({ min: 0, max: 1, noNaN: true }) }),
    );
    fc.assert(
      fc.property(steps, (list) => {
        const size = new ClaimSize();
        for (const { free, part } of list) {
          const asked = size.next(free);
          expect(asked).toBeGreaterThanOrEqual(1);
          expect(asked).toBeLessThanOrEqual(Math.min(free, MAX_CLAIM_SIZE));
          size.observe(asked, Math.floor(asked * part));
        }
      }),
    );
  });

  it('fills 256 places in a few claims when there is plenty, and falls back when there is not', () => {
    const size = new ClaimSize();
    let free = 256;
    let claims = 0;
    for (; free > 0; claims++) {
      const asked = size.next(free);
      size.observe(asked, asked);
      free -= asked;
    }
    expect(claims).toBeLessThanOrEqual(8);
    expect(size.next(256)).toBe(MAX_CLAIM_SIZE);
    size.observe(MAX_CLAIM_SIZE, 3);
    expect(size.next(256)).toBe(MIN_CLAIM_SIZE);
  });
});
