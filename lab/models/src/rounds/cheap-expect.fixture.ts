import { expect } from 'vitest';

// `expect` costs microseconds, which is most of the time of a check that a test repeats after each of a million acts.

/** Like `expect(actual).toBe(expected)`, without its cost while the two are the same. */
export function expectSame(actual: unknown, expected: unknown): void {
  if (!Object.is(actual, expected)) expect(actual).toBe(expected);
}

/** Like `expect(actual).toBeLessThanOrEqual(most)`, without its cost while the number is within the bound. */
export function expectAtMost(actual: number, most: number): void {
  if (!(actual <= most)) expect(actual).toBeLessThanOrEqual(most);
}
