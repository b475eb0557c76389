import { expect } from 'vitest';
import type { ModelRound } from './round-model.types';

/** Checks the invariants of an open round. */
export function checkOpen(round: ModelRound): void {
  const { reserved, accepted, neededGroups, rules, inFlight, places, spare, held } = round;
  expect(reserved + accepted.length).toBeLessThanOrEqual(neededGroups);
  const awaitsRewards = rules.equalRewards === 'replace' && round.outcomes.size < accepted.length;
  if (!awaitsRewards) expect(accepted.length).toBeLessThan(neededGroups);
  if (rules.concurrency > 0) expect(inFlight).toBeLessThanOrEqual(rules.concurrency);
  if (places !== undefined) {
    const free = [...places.values()].reduce((sum, count) => sum + count, spare);
    expect(free).toBe(neededGroups - accepted.length - reserved);
  }
  const live = [...round.live];
  expect(live.filter(({ pinned }) => pinned).length).toBe(reserved);
  expect(new Set(live.filter((group) => group.held))).toEqual(held);
}
