import { RandomStream } from '@broomwagon/models';
import { expect, it } from 'vitest';
import { computeDispatch, expectedLongest, type PromptLengths } from './dispatch-order';

const buildLengths = (lengths: readonly number[], capShare = 0): PromptLengths => {
  const logs = lengths.map((tokens) => Math.log(tokens));
  const meanLog = logs.reduce((sum, log) => sum + log, 0) / logs.length;
  const variance = logs.reduce((sum, log) => sum + (log - meanLog) ** 2, 0) / logs.length;
  return { samples: lengths.length, meanLog, deviationLog: Math.sqrt(variance), capShare };
};

it('expects about the longest of a group', () => {
  const random = new RandomStream('prompt-lengths');
  const draw = (): number => Math.exp(7 + 0.4 * random.normal());
  const known = buildLengths(Array.from({ length: 64 }, draw));
  const longest = Array.from({ length: 500 }, () => Math.max(...Array.from({ length: 16 }, draw)));
  const mean = longest.reduce((sum, tokens) => sum + tokens, 0) / longest.length;
  expect(expectedLongest(known, 16, 100_000) / mean).toBeGreaterThan(0.75);
  expect(expectedLongest(known, 16, 100_000) / mean).toBeLessThan(1.5);
});

it('expects the budget where one of the group will reach it, and never more', () => {
  expect(expectedLongest(buildLengths([4_096, 4_096], 1), 8, 32_768)).toBe(32_768);
  expect(expectedLongest(buildLengths([30_000, 40_000]), 64, 32_768)).toBe(32_768);
  expect(expectedLongest(buildLengths([100]), 1, 32_768)).toBe(100);
});

it('orders groups by known lengths of their prompts, and probes groups of unknown prompts', () => {
  const group = { samples: 1, maxTokens: 8_000 };
  const known = buildLengths([300]);
  expect(computeDispatch('arrival', group, known)).toBeUndefined();
  expect(computeDispatch('longest-first', group, known)).toEqual({ expectedTokens: 300, probes: false });
  expect(computeDispatch('longest-first', group, undefined)).toEqual({ expectedTokens: 8_000, probes: false });
  expect(computeDispatch('probe-first', group, known)).toEqual({ expectedTokens: 300, probes: false });
  expect(computeDispatch('probe-first', group, undefined)).toEqual({ expectedTokens: 8_000, probes: true });
});
