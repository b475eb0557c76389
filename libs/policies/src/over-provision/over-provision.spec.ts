import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LENGTH_PRESETS, responseLength } from '@broomwagon/models';
import { lengthBin } from '../ledger/length-bins';
import { chooseOverProvision, overProvisionFor, roundTime, tailShares, type GroupLengths } from '.';

it('has the over-provision that the rule was published with', () => {
  expect(overProvisionFor(0.177, 128)).toBeCloseTo(1.265, 2);
  expect(overProvisionFor(0.264, 128)).toBeCloseTo(1.425, 2);
  expect(overProvisionFor(0.387, 128)).toBeCloseTo(1.725, 2);
  expect(overProvisionFor(0.177, 128, 2)).toBeCloseTo(1.31, 2);
});

it('keeps the needed groups with a margin of z deviations, and is the smallest that does', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.01, max: 0.6, noNaN: true }),
      fc.integer({ min: 1, max: 8_192 }),
      (share, needed) => {
        const kept = (e: number) => e * needed * (1 - share) - Math.sqrt(e * needed * share * (1 - share));
        const e = overProvisionFor(share, needed);
        expect(kept(e)).toBeGreaterThanOrEqual(needed - 1e-6);
        expect(kept(e * 0.999)).toBeLessThan(needed);
      },
    ),
  );
});

describe('tailShares', () => {
  const rounded = (lengths: GroupLengths) => tailShares(lengths).shares.map(({ share }) => Number(share.toFixed(9)));

  it('is the share of longer groups when nothing is censored', () => {
    expect(rounded({ finished: { 10: 6, 20: 3, 30: 1 }, censored: { 5: 0 } })).toEqual([0.4, 0.1, 0]);
  });

  it('counts a cut group as longer than its length at the cut', () => {
    expect(rounded({ finished: { 10: 6, 30: 1 }, censored: { 20: 3 } })).toEqual([0.4, 0]);
    expect(tailShares({ finished: { 10: 6 }, censored: { 20: 4 } })).toMatchObject({ groups: 10, censoredGroups: 4 });
  });
});

it('fits the time of a round, and falls back to lengths when there is nothing to fit', () => {
  const time = roundTime(
    [1_000, 4_000, 9_000].map((longestTokens) => ({ longestTokens, durationMs: 5_000 + 2 * longestTokens })),
  );
  expect(time(2_000)).toBeCloseTo(9_000);
  expect(roundTime([])(7)).toBe(7);
  expect(roundTime([1, 2, 3].map((n) => ({ longestTokens: 10 * n, durationMs: 100 - n })))(7)).toBe(7);
});

describe('chooseOverProvision', () => {
  const base = { neededGroups: 128, rounds: [], tokensPerGroup: 10_000, fleetKvTokens: 0 };

  function buildLengths(endlessShare: number): GroupLengths {
    const distribution = { ...LENGTH_PRESETS['math-short-16k'], endlessShare };
    const lengths: GroupLengths = { finished: {}, censored: {} };
    for (let group = 0; group < 1_024; group++) {
      let longest = 0;
      for (let sampleIndex = 0; sampleIndex < 8; sampleIndex++) {
        longest = Math.max(longest, responseLength(distribution, { seed: 1, promptKey: `p${group}`, sampleIndex }));
      }
      const bin = lengthBin(longest);
      lengths.finished[bin] = (lengths.finished[bin] ?? 0) + 1;
    }
    return lengths;
  }

  // 18, 26 and 39 % of the groups have an endless response. Best of a simulation of 60 steps: 1.31, 1.38 to 1.44, 1.75.
  it.each([
    [0.05, 1.2, 1.4],
    [0.08, 1.3, 1.55],
    [0.135, 1.55, 1.75],
  ])('finds the best over-provision of a trace with %f endless responses', (share, least, most) => {
    const { overProvision } = chooseOverProvision({ ...base, lengths: buildLengths(share), current: 1.5 });
    const { why } = chooseOverProvision({ ...base, lengths: buildLengths(share), current: overProvision });
    expect(Math.min(1.75, why.wanted!)).toBeGreaterThan(least);
    expect(Math.min(1.75, why.wanted!)).toBeLessThanOrEqual(most);
  });

  it('waits for lengths, then approaches the wanted over-provision by 1/16 a step', () => {
    const few = chooseOverProvision({ ...base, lengths: { finished: { 40: 31 }, censored: {} }, current: 1.25 });
    expect(few).toMatchObject({ overProvision: 1.25, why: { limitedBy: 'too-few', groups: 31 } });
    const lengths = { finished: { 80: 820, 112: 204 }, censored: {} };
    const first = chooseOverProvision({ ...base, lengths, current: 1 });
    expect(first).toMatchObject({ overProvision: 1.0625, why: { limitedBy: 'damping' } });
    expect(first.why.tailShare).toBeCloseTo(0.2, 2);
    expect(first.why.wanted).toBeCloseTo(overProvisionFor(204 / 1024, 128), 6);
    let current = 1;
    for (let step = 0; step < 16; step++) current = chooseOverProvision({ ...base, lengths, current }).overProvision;
    expect(current).toBeCloseTo(overProvisionFor(204 / 1024, 128), 6);
  });

  it('launches nothing too much when there is no tail', () => {
    const lengths = { finished: { 80: 1_000 }, censored: {} };
    expect(chooseOverProvision({ ...base, lengths, current: 1.05 }).overProvision).toBe(1);
  });

  it('stays below its highest value and within the KV caches', () => {
    const lengths = { finished: { 60: 550, 112: 450 }, censored: {} };
    const capped = chooseOverProvision({ ...base, lengths, current: 1.75 });
    expect(capped).toMatchObject({ overProvision: 1.75, why: { limitedBy: 'cap' } });
    const fleetKvTokens = 128 * 10_000 * 1.2;
    const fitting = chooseOverProvision({ ...base, lengths, current: 1.2, fleetKvTokens });
    expect(fitting.overProvision).toBeCloseTo(1.2);
    expect(fitting.why.limitedBy).toBe('kv');
  });
});
