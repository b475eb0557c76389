import { expectAtMost, expectSame } from './cheap-expect.fixture';
import type { ModelRound } from './round-model.types';

/** Checks the invariants of an open round. */
export function checkOpen(round: ModelRound): void {
  const { reserved, accepted, neededGroups, rules, inFlight, places, spare, held } = round;
  expectAtMost(reserved + accepted.length, neededGroups);
  const awaitsRewards = rules.equalRewards === 'replace' && round.outcomes.size < accepted.length;
  if (!awaitsRewards) expectAtMost(accepted.length, neededGroups - 1);
  if (rules.concurrency > 0) expectAtMost(inFlight, rules.concurrency);
  if (places !== undefined) {
    const free = [...places.values()].reduce((sum, count) => sum + count, spare);
    expectSame(free, neededGroups - accepted.length - reserved);
  }
  const live = [...round.live];
  expectSame(live.filter(({ pinned }) => pinned).length, reserved);
  const heldNow = live.filter((group) => group.held);
  expectSame(heldNow.length, held.size);
  expectSame(
    heldNow.find((group) => !held.has(group)),
    undefined,
  );
}
