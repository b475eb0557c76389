import { describe, expect, it } from 'vitest';
import { sampleSeed } from './sample-seed';

const sample = { job: 'job', groupId: 'group', sampleIndex: 0, madeTokens: 0 };

describe('sampleSeed', () => {
  // A change of any of these would change the samples of every seeded run that is continued under the new release.
  it.each([
    [0, {}, 1314040237],
    [1, {}, 2138263747],
    [1, { sampleIndex: 1 }, 307745347],
    [1, { madeTokens: 512 }, 1563161401],
    [1, { groupId: 'gruppe-ä#1' }, 165527351],
    [-7, { job: 'another' }, 168017678],
    [Number.MAX_SAFE_INTEGER, {}, 1409829274],
  ])('of %i and %j is %i', (seed, changes, expected) => {
    expect(sampleSeed(seed, { ...sample, ...changes })).toBe(expected);
  });

  it('is a non-negative integer of 31 bits, another one for every input', () => {
    const seeds = new Set<number>();
    for (let sampleIndex = 0; sampleIndex < 100; sampleIndex++) {
      for (const madeTokens of [0, 1, 2, 100]) {
        for (const groupId of ['a', 'b']) seeds.add(sampleSeed(1, { ...sample, groupId, sampleIndex, madeTokens }));
      }
    }
    for (const seed of seeds) expect(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31).toBe(true);
    // Two of 800 numbers below 2^31 are equal with a probability of 1.5e-4; these are always the same 800.
    expect(seeds.size).toBe(800);
  });
});
