import { expect, it } from 'vitest';
import { SETUPS } from '../parameters';
import { compareAuto } from './compare-auto';

/** A small form of `npm run lab -- auto`, which docs/laboratory.md has the table of. */
const SHORT = { steps: 45, seeds: [1], overProvisions: [2], drifts: false };

it('comes near the best fixed policy within its bounds', () => {
  const found = compareAuto(SETUPS.april, SHORT);
  expect(found.ratio).toBeGreaterThan(0.95);
  expect(found.autoSeconds).toBeLessThan(0.9 * found.waitSeconds);
  expect(found.versionSpan).toBeLessThanOrEqual(2);
  expect(found.wasteShare).toBe(0);
  expect(Math.abs(found.lengthBias - 1)).toBeLessThan(0.001);
});

it('follows lengths that double over 50 steps', () => {
  const found = compareAuto(SETUPS.april, { ...SHORT, drifts: true });
  expect(found.ratio).toBeGreaterThan(0.9);
  expect(found.versionSpan).toBeLessThanOrEqual(2);
});
