import { expect, it } from 'vitest';
import { SETUPS } from '../parameters';
import { compareAuto } from './compare-auto';

/** A small form of `npm run lab -- auto`; docs/laboratory.md has the full table. */
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

it('keeps bounds of waste, of old tokens and of the bias that the ledger has', () => {
  const { servers, groupsPerStep, ...setup } = SETUPS.tailsieve;
  const small = { ...setup, servers: servers / 4, groupsPerStep: groupsPerStep / 4 };
  const bounds = { maxOffPolicyShare: 0.1, maxLengthBias: 0.25, maxWaste: 0.3 };
  const found = compareAuto(small, { ...SHORT, overProvisions: [1.125, 1.25], bounds });
  expect(found.best.name).toContain('regenerate');
  expect(found.autoSeconds).toBeLessThan(0.95 * found.waitSeconds);
  expect(found.offPolicyShare).toBeLessThanOrEqual(0.1);
  expect(Math.abs(found.ledgerBias - 1)).toBeLessThanOrEqual(0.25);
  expect(found.wasteShare).toBeLessThanOrEqual(0.3);
});
