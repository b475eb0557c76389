import { expect, it } from 'vitest';
import { tailSeconds } from './tail-seconds';

it('measures the tail from the moment nine tenths are done', () => {
  const samples = [0, 50, 89, 90, 95, 100].map((done, index) => ({ atMs: index * 1_000, done }));
  expect(tailSeconds(samples, 10_000)).toBe(7);
  expect(tailSeconds([], 10)).toBe(0);
});
