import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { difference, mean, Noise, WINDOW } from './fit';

/** Differences as measured on an engine: 0.03 nats on average, single tokens up to 0.25. */
function makeNoise(seed: number, length = 400): number[] {
  let state = seed;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return 0.02 + 0.23 * (state / 2 ** 32) ** 20;
  });
}
const seeds = fc.integer({ min: 1, max: 2 ** 31 });
const elsewhere = new Noise([1, 2, 3, 4, 5, 6, 7, 8].map((seed) => makeNoise(seed)));

describe('the fit of a join', () => {
  it('is within the limit for any window with the noise of the engine', () => {
    fc.assert(
      fc.property(seeds, fc.integer({ min: 1, max: WINDOW }), (seed, count) => {
        expect(mean(makeNoise(seed, count))).toBeLessThan(elsewhere.limit(count));
      }),
    );
  });

  it('is beyond the limit when the tokens differ by half a nat, or the first by five', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const after = makeNoise(seed, WINDOW);
        const limit = elsewhere.limit(WINDOW);
        expect(mean(after.map((one) => one + 0.5))).toBeGreaterThan(limit);
        expect(mean([5, ...after.slice(1)])).toBeGreaterThan(limit);
      }),
    );
  });

  it('has a limit of 0.1 nats without any noise, and for fewer tokens than a window', () => {
    expect(new Noise([Array<number>(100).fill(0)]).limit(WINDOW)).toBe(0.1);
    expect(new Noise([[0.01, 0.02]]).limit(WINDOW)).toBe(0.1);
  });

  it('counts an impossible token as 20 nats', () => {
    expect(difference(-0.5, -9_999)).toBe(20);
    expect(difference(-0.5, -0.75)).toBe(0.25);
  });
});
