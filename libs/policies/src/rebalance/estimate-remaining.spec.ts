import { expect, it } from 'vitest';
import { estimateRemaining } from './estimate-remaining';

it('guesses by the longest sibling, then by age, never above the budget', () => {
  const guess = (madeTokens: number, longestTokens: number) =>
    estimateRemaining({ madeTokens, maxTokens: 1_000, longestTokens });
  expect(guess(100, 0)).toBe(900);
  expect(guess(100, 400)).toBe(300);
  expect(guess(450, 400)).toBe(450);
  expect(guess(700, 400)).toBe(300);
  expect(guess(1_000, 400)).toBe(0);
});
