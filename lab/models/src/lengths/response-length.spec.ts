import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LENGTH_PRESETS, type LengthPresetName } from './length-presets';
import { MIN_RESPONSE_TOKENS, responseLength } from './response-length';

/** Sorted lengths of 4,000 prompts with 16 samples each. */
function draw(preset: LengthPresetName): { mean: number; quantile: (q: number) => number } {
  const lengths: number[] = [];
  for (let prompt = 0; prompt < 4_000; prompt++) {
    for (let sampleIndex = 0; sampleIndex < 16; sampleIndex++) {
      lengths.push(responseLength(LENGTH_PRESETS[preset], { seed: 7, promptKey: `p${prompt}`, sampleIndex }));
    }
  }
  lengths.sort((a, b) => a - b);
  return {
    mean: lengths.reduce((sum, value) => sum + value, 0) / lengths.length,
    quantile: (q) => lengths[Math.floor(q * (lengths.length - 1))]!,
  };
}

function expectNear(actual: number, expected: number, share: number): void {
  expect(Math.abs(actual - expected) / expected, `${actual} is not within ${share} of ${expected}`).toBeLessThan(share);
}

describe('response lengths', () => {
  it.each([
    ['math-short-8k', 991],
    ['math-short-16k', 1_235],
    ['math-short-32k', 1_706],
  ] as const)('%s has the mean %d, and the published median, upper quartile and cap', (preset, mean) => {
    const lengths = draw(preset);
    expectNear(lengths.mean, mean, 0.03);
    expectNear(lengths.quantile(0.5), 575, 0.03);
    expectNear(lengths.quantile(0.75), 1_100, 0.03);
    expect(lengths.quantile(0.98)).toBe(LENGTH_PRESETS[preset].capTokens);
  });

  it.each([
    ['deepmath-8k', 0.024],
    ['deepmath-16k', 0.01],
    ['deepmath-32k', 0.01],
  ] as const)('%s has the quantiles of RollPacker, and %d at the cap', (preset, atCap) => {
    const lengths = draw(preset);
    for (const [share, tokens] of [
      [0.25, 415],
      [0.5, 661],
      [0.75, 1_129],
      [0.9, 2_566],
      [0.95, 4_101],
    ] as const) {
      expectNear(lengths.quantile(share), tokens, 0.05);
    }
    const { capTokens } = LENGTH_PRESETS[preset];
    expect(lengths.quantile(1 - 0.8 * atCap)).toBe(capTokens);
    expect(lengths.quantile(1 - 1.2 * atCap)).toBeLessThan(capTokens);
  });

  it.each([
    ['think-32k', 8_000, undefined, undefined],
    ['vl-72b', 7_615, undefined, undefined],
    ['small-16k', undefined, 1_160, 4_115],
  ] as const)('%s is like its trace', (preset, mean, p50, p90) => {
    const lengths = draw(preset);
    if (mean !== undefined) expectNear(lengths.mean, mean, 0.05);
    if (p50 !== undefined) expectNear(lengths.quantile(0.5), p50, 0.03);
    if (p90 !== undefined) expectNear(lengths.quantile(0.9), p90, 0.03);
  });

  it('have endless responses in the same group more often than by chance', () => {
    const distribution = LENGTH_PRESETS['math-short-16k'];
    let [groups, endless] = [0, 0];
    for (let prompt = 0; prompt < 4_000; prompt++) {
      const identity = (sampleIndex: number) => ({ seed: 7, promptKey: `p${prompt}`, sampleIndex });
      const atCap = Array.from({ length: 8 }, (_, index) => responseLength(distribution, identity(index))).filter(
        (tokens) => tokens === distribution.capTokens,
      ).length;
      endless += atCap;
      groups += atCap > 0 ? 1 : 0;
    }
    expectNear(endless / 32_000, 0.03, 0.1);
    // Independent endless responses would be in 1 - 0.97^8 = 22 % of the groups.
    expect(groups / 4_000).toBeLessThan(0.14);
  });

  it('depend on seed, prompt and sample and on nothing else', () => {
    const identity = fc.record({ seed: fc.integer(), promptKey: fc.string(), sampleIndex: fc.nat() });
    fc.assert(
      fc.property(identity, identity, (one, other) => {
        const preset = LENGTH_PRESETS['math-short-16k'];
        const first = responseLength(preset, one);
        responseLength(preset, other);
        expect(responseLength(preset, { ...one })).toBe(first);
        expect(first).toBeGreaterThanOrEqual(MIN_RESPONSE_TOKENS);
        expect(first).toBeLessThanOrEqual(preset.capTokens);
        expect(Number.isInteger(first)).toBe(true);
      }),
    );
  });

  it('differ among the samples of a prompt', () => {
    const lengths = new Set(
      Array.from({ length: 32 }, (_, sampleIndex) =>
        responseLength(LENGTH_PRESETS['think-32k'], { seed: 1, promptKey: 'same', sampleIndex }),
      ),
    );
    expect(lengths.size).toBeGreaterThan(28);
  });
});
