import type { TailPolicy } from '@broomwagon/contracts';
import { planRound } from '../rounds';
import { roundRules } from '../tail';

/** Samples that a job has trained, for a replay under another policy. */
export interface RecordedSamples {
  /** Lengths of the samples of each group, tokens; groups in the order of their submission. */
  groups: readonly (readonly number[])[];
  groupsPerStep: number;
  /** Time of a round in which the slowest accepted sample generates so many tokens, see `roundTime`. */
  time(tokens: number): number;
}

/** Means over the steps while there is new data, or over all steps if there are no such steps. Shares are 0 to 1. */
export interface WhatIfOutcome {
  /** All steps of the data set. */
  steps: number;
  /** In the unit of {@link RecordedSamples.time}. */
  stepTime: number;
  /** Trained tokens in one unit of time. */
  tokensPerTime: number;
  offPolicyShare: number;
  /** Mean length of trained / of launched samples. */
  lengthBias: number;
  wasteShare: number;
}

interface Group {
  id: number;
  lengths: readonly number[];
  /** Tokens of each sample that earlier rounds have generated. */
  kept: number[];
  /** Tokens that its longest sample lacks. */
  left: number;
  draws: number;
}

/**
 * Replays recorded samples under another policy. The planner of production forms the rounds. All samples of a round
 * generate at the same speed from its beginning; the capacity of servers, prefill and moves are not modelled (the
 * laboratory does that). A sample whose tokens are thrown away gets the length of any of its siblings.
 */
export function whatIf({ groups, groupsPerStep, time }: RecordedSamples, policy: TailPolicy): WhatIfOutcome {
  const sums = { steps: 0, time: 0, tokens: 0, samples: 0, offPolicy: 0, wasted: 0, launchedTokens: 0, launched: 0 };
  let within: typeof sums | undefined;
  let queue: Group[] = [];
  let next = 0;
  for (;;) {
    // Finished groups go first, and the others keep their order.
    queue = [...queue.filter(({ left }) => left === 0), ...queue.filter(({ left }) => left > 0)];
    const finishedGroups = queue.filter(({ left }) => left === 0).length;
    const progress = { stepsTrained: sums.steps, longtailGroups: queue.length, settlingGroups: 0, finishedGroups };
    const plan = planRound(progress, { groupsPerStep, remainingGroups: groups.length - next, policy });
    if (plan.kind === 'done') break;
    const rules = roundRules(policy, plan.kind);
    const taken = queue.splice(0, plan.takeGroups);
    const fresh = groups.slice(next, next + plan.newGroups).map((lengths, index) => newGroup(next + index, lengths));
    next += fresh.length;
    const shortestFirst = (some: Group[]): Group[] => some.toSorted((one, other) => one.left - other.left);
    const order = rules.reservesTaken ? [...taken, ...shortestFirst(fresh)] : shortestFirst([...taken, ...fresh]);
    const accepted = order.slice(0, plan.neededGroups);
    const roundTokens = Math.max(...accepted.map(({ left }) => left));
    for (const { lengths } of fresh) {
      sums.launched += lengths.length;
      sums.launchedTokens += sum(lengths);
    }
    for (const { lengths, kept } of accepted) {
      sums.samples += lengths.length;
      sums.tokens += sum(lengths);
      sums.offPolicy += sum(kept);
    }
    const isAccepted = new Set(accepted);
    const cut = [...taken, ...fresh].filter((group) => !isAccepted.has(group));
    for (const group of cut) {
      const made = group.lengths.map((tokens, index) => Math.min(tokens, group.kept[index]! + roundTokens));
      if (rules.onCut === 'discard') {
        sums.wasted += sum(made);
        redraw(group);
      } else {
        group.kept = made;
        group.left = leftOf(group.lengths, made);
      }
    }
    queue = [...cut.filter((group) => taken.includes(group)), ...queue, ...cut.filter((one) => fresh.includes(one))];
    sums.steps += 1;
    sums.time += time(roundTokens);
    if (next < groups.length) within = { ...sums };
  }
  const counted = within ?? sums;
  return {
    steps: sums.steps,
    stepTime: ratio(counted.time, counted.steps),
    tokensPerTime: ratio(counted.tokens, counted.time),
    offPolicyShare: ratio(counted.offPolicy, counted.tokens),
    lengthBias: ratio(counted.tokens * counted.launched, counted.samples * counted.launchedTokens),
    wasteShare: ratio(counted.wasted, counted.wasted + counted.tokens),
  };
}

function newGroup(id: number, lengths: readonly number[]): Group {
  const kept = lengths.map(() => 0);
  return { id, lengths, kept, left: leftOf(lengths, kept), draws: 0 };
}

function leftOf(lengths: readonly number[], kept: readonly number[]): number {
  return Math.max(0, ...lengths.map((tokens, index) => tokens - kept[index]!));
}

/** Gives each sample the length of a sibling. The choice is spread, but the same in each replay. */
function redraw(group: Group): void {
  group.draws += 1;
  const { id, draws, lengths } = group;
  group.lengths = lengths.map((_, index) => lengths[spread(id, draws, index) % lengths.length]!);
  group.kept = lengths.map(() => 0);
  group.left = leftOf(group.lengths, group.kept);
}

/** A whole number that looks random, from whole numbers (the mixing step of MurmurHash3). */
function spread(...parts: number[]): number {
  let hash = 0;
  for (const part of parts) {
    hash = Math.imul(hash ^ Math.imul(part + 1, 0xcc9e2d51), 0x1b873593);
    hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  }
  return (hash ^ (hash >>> 13)) >>> 0;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
