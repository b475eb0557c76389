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
  ] as const)('%s has the published mean %d, median and quantiles', (preset, mean) => {
    const lengths = draw(preset);
    expectNear(lengths.mean, mean, 0.06);
    expectNear(lengths.quantile(0.5), 600, 0.05);
    expectNear(lengths.quantile(0.75), 1_070, 0.06);
    expectNear(lengths.quantile(0.9), 1_900, 0.12);
    expect(lengths.quantile(0.995)).toBe(LENGTH_PRESETS[preset].capTokens);
  });

  it.each([
    ['think-32k', 8_000, undefined, undefined],
    ['vl-72b', 7_465, undefined, undefined],
    ['moe-32k', 7_900, undefined, undefined],
    ['small-16k', undefined, 1_187, 4_306],
    ['tight-8k', 3_700, undefined, undefined],
  ] as const)('%s is like its trace', (preset, mean, p50, p90) => {
    const lengths = draw(preset);
    if (mean !== undefined) expectNear(lengths.mean, mean, 0.08);
    if (p50 !== undefined) expectNear(lengths.quantile(0.5), p50, 0.06);
    if (p90 !== undefined) expectNear(lengths.quantile(0.9), p90, 0.1);
  });

  it('depends on seed, prompt and sample and on nothing else', () => {
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

  it('gives the samples of a prompt different lengths', () => {
    const lengths = new Set(
      Array.from({ length: 32 }, (_, sampleIndex) =>
        responseLength(LENGTH_PRESETS['think-32k'], { seed: 1, promptKey: 'same', sampleIndex }),
      ),
    );
    expect(lengths.size).toBeGreaterThan(28);
  });
});
