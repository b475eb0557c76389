import { expect, it } from 'vitest';
import { highest } from './highest';

it('finds the highest of more values than a call may have arguments', () => {
  const values = Array.from({ length: 300_000 }, (_, index) => index % 1_000);
  expect(highest(values)).toBe(999);
});
