import { expect, it } from 'vitest';
import { addRunning } from './add-running';

it('adds running samples to the ranges of ended samples, and ranges that have only running ones', () => {
  const lengths = [
    { fromTokens: 64, toTokens: 76, finished: 3, unfinished: 1 },
    { fromTokens: 128, toTokens: 152, finished: 2, unfinished: 0 },
  ];
  const running = [
    { fromTokens: 0, toTokens: 1, running: 4 },
    { fromTokens: 64, toTokens: 76, running: 5 },
  ];
  expect(addRunning(lengths, running)).toEqual([
    { fromTokens: 0, toTokens: 1, finished: 0, unfinished: 0, running: 4 },
    { fromTokens: 64, toTokens: 76, finished: 3, unfinished: 1, running: 5 },
    { fromTokens: 128, toTokens: 152, finished: 2, unfinished: 0, running: 0 },
  ]);
  expect(addRunning(lengths)).toEqual(lengths.map((range) => ({ ...range, running: 0 })));
});
