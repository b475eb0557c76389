import { expect, it } from 'vitest';
import { generationSeconds, tailSeconds } from './tail-seconds';

it('measures the tail from the moment nine tenths are done', () => {
  const samples = [0, 50, 89, 90, 95, 100].map((done, index) => ({ atMs: index * 1_000, done }));
  expect(tailSeconds(samples, 10_000)).toBe(7);
  expect(tailSeconds([], 10)).toBe(0);
});

it('takes the mean and the slowest of the samples that were done at each moment', () => {
  const samples = [0, 2, 2, 3].map((done, index) => ({ atMs: 10_000 + index * 1_000, done }));
  expect(generationSeconds(samples, 10_000)).toEqual({ mean: (1 + 1 + 3) / 3, slowest: 3 });
  expect(generationSeconds([], 0)).toEqual({ mean: 0, slowest: 0 });
});
