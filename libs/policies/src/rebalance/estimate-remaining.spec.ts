import { expect, it } from 'vitest';
import { estimateRemaining } from './estimate-remaining';

const guess = (madeTokens: number, longestTokens: number, others: { remembered?: number; unfinished?: number } = {}) =>
  estimateRemaining({
    madeTokens,
    maxTokens: 1_000,
    longestTokens,
    rememberedTokens: others.remembered ?? 0,
    unfinishedTokens: others.unfinished ?? madeTokens,
  });

it('guesses by the longest sibling, then by age, never above the budget', () => {
  expect(guess(100, 400)).toBe(300);
  expect(guess(450, 400)).toBe(450);
  expect(guess(700, 400)).toBe(300);
  expect(guess(1_000, 400)).toBe(0);
});

it('guesses by earlier samples of the prompt before a sibling has finished, and by the longer of both afterwards', () => {
  expect(guess(100, 0, { remembered: 600 })).toBe(500);
  expect(guess(100, 200, { remembered: 600 })).toBe(500);
  expect(guess(100, 700, { remembered: 600 })).toBe(600);
  expect(guess(0, 0, { remembered: 5_000 })).toBe(1_000);
});

it('guesses by unfinished siblings when nothing else is known, or when they are longer than that', () => {
  expect(guess(0, 0)).toBe(256);
  expect(guess(300, 0)).toBe(300);
  expect(guess(100, 0, { unfinished: 300 })).toBe(500);
  expect(guess(100, 200, { unfinished: 300 })).toBe(500);
  expect(guess(100, 400, { unfinished: 300 })).toBe(300);
});
