import type { DripWhy } from '@broomwagon/contracts';

/** Groups and times of new groups (bulk) and of groups of the queue (tail) in the last step. */
export interface StepPace {
  bulkGroups: number;
  /** Time until the last accepted new group, milliseconds. */
  bulkMs: number;
  tailGroups: number;
  /** Time until the last accepted group of the queue, milliseconds. */
  tailMs: number;
}
/** State of an adaptive `dripGroups` from step to step. */
export interface DripState {
  groups: number;
  heldSteps: number;
  /** New groups per second, moving average; 0 = not known yet. `tailPace`: groups of the queue. */
  bulkPace: number;
  tailPace: number;
}

/** Weight of the last step in the moving averages. */
const WEIGHT = 0.5;
const HELD_AFTER_INCREASE = 1;
const HELD_AFTER_DECREASE = 2;

/**
 * Computes the next number of groups from the queue, by the inner loop of TailSieve: with q* = N x tail pace / (bulk
 * pace + tail pace), both kinds of groups end together. Changes are damped, and each value is kept for some steps.
 * @param before state of the last step; undefined for the first round, which takes `first` groups
 * @param pace pace of the last step; undefined if there is no closed step
 */
export function nextDrip(
  before: DripState | undefined,
  pace: StepPace | undefined,
  groupsPerStep: number,
  first = 1,
): { state: DripState; why: DripWhy } {
  const start = before ?? { groups: Math.min(first, groupsPerStep), heldSteps: 0, bulkPace: 0, tailPace: 0 };
  const bulkPace = moving(start.bulkPace, computePace(pace?.bulkGroups, pace?.bulkMs));
  const tailPace = moving(start.tailPace, computePace(pace?.tailGroups, pace?.tailMs));
  const isKnown = bulkPace > 0 && tailPace > 0;
  const wanted = isKnown ? (groupsPerStep * tailPace) / (bulkPace + tailPace) : start.groups;
  let { groups, heldSteps } = start;
  if (heldSteps > 0) {
    heldSteps -= 1;
  } else {
    const change = Math.trunc((wanted - groups) / 2) || Math.sign(Math.round(wanted - groups));
    groups = Math.min(Math.max(1, groupsPerStep - 1), Math.max(1, groups + change));
    if (groups > start.groups) heldSteps = HELD_AFTER_INCREASE;
    if (groups < start.groups) heldSteps = HELD_AFTER_DECREASE;
  }
  return { state: { groups, heldSteps, bulkPace, tailPace }, why: { bulkPace, tailPace, wanted, heldSteps } };
}

function computePace(groups = 0, ms = 0): number {
  return groups > 0 && ms > 0 ? (groups * 1_000) / ms : 0;
}

function moving(before: number, now: number): number {
  if (now === 0) return before;
  return before === 0 ? now : before + WEIGHT * (now - before);
}
