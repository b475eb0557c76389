import { formRound } from '../forming/form-round';
import { type FixedPolicy, roundRules } from '../tail';
import { ReplayedGroup, ReplayedQueue } from './replayed-queue';

/** Samples that a job has trained, for a replay under another policy. */
export interface RecordedSamples {
  /** Lengths of the samples of each group, tokens; groups in the order of their submission. */
  groups: readonly (readonly number[])[];
  groupsPerStep: number;
  /**
   * Time of a round in which the longest accepted sample generates `tokens`, and all samples together generate
   * `madeTokens` (`roundTime`, `loadedRoundTime`).
   */
  time(tokens: number, madeTokens: number): number;
  /**
   * Number of first steps that are replayed and not counted, because the long-tail queue is still short. Default: 0.
   */
  warmUpSteps?: number;
}

/** One policy, or a function that returns the policy of a step (from 1). */
export type ReplayedPolicy = FixedPolicy | ((step: number) => FixedPolicy);

/** Means over the steps with remaining new groups, or over all steps if there are no such steps. Shares are 0 to 1. */
export interface WhatIfOutcome {
  /** All steps of the data set. */
  steps: number;
  /** Mean time of a step, in the unit of {@link RecordedSamples.time}. */
  stepTime: number;
  /** Trained tokens in one unit of time. */
  tokensPerTime: number;
  offPolicyShare: number;
  /**
   * Mean length of trained samples / of started samples, over all steps of the data set, because long samples are in
   * the queue until the end. As in the ledger, a sample that is generated again counts as started again.
   */
  lengthBias: number;
  wasteShare: number;
  /** Highest number of steps between the first token of a trained group and its training. */
  versionSpan: number;
}

interface Sums {
  steps: number;
  time: number;
  tokens: number;
  samples: number;
  offPolicy: number;
  wasted: number;
}

/**
 * Replays recorded samples under another policy, with a new weight version in each step. {@link formRound} forms the
 * rounds, and bounds pin groups as in real rounds. All samples of a round generate at the same speed from its
 * beginning. Only the laboratory models servers, prefill and moves. A sample whose tokens are thrown away gets the
 * length of a sample of the same group.
 */
export function whatIf(recorded: RecordedSamples, policy: ReplayedPolicy): WhatIfOutcome {
  return toEnd(whatIfSteps(recorded, policy));
}

/** Runs a generator to its end, and returns the result. */
export function toEnd<Result>(steps: Generator<void, Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Replays recorded samples as {@link whatIf} does, and yields after each step, for a caller that may not block. */
export function* whatIfSteps(recorded: RecordedSamples, replayed: ReplayedPolicy): Generator<void, WhatIfOutcome> {
  const { groups, groupsPerStep, time, warmUpSteps = 0 } = recorded;
  const sums: Sums = {
    steps: 0,
    time: 0,
    tokens: 0,
    samples: 0,
    offPolicy: 0,
    wasted: 0,
  };
  let before: Sums | undefined;
  let within: Sums | undefined;
  let versionSpan = 0;
  const begun = { samples: 0, tokens: 0 };
  const begin = ({ lengths, total }: ReplayedGroup): void => {
    begun.samples += lengths.length;
    begun.tokens += total;
  };
  const queue = new ReplayedQueue();
  let next = 0;
  for (;;) {
    if (sums.steps === warmUpSteps) before = { ...sums };
    const step = sums.steps + 1;
    const policy = typeof replayed === 'function' ? replayed(step) : replayed;
    const progress = { stepsTrained: sums.steps, settlingGroups: 0, ...queue.counts(step) };
    const plan = formRound(progress, { groupsPerStep, remainingGroups: groups.length - next, policy });
    if (plan.kind === 'done') break;
    const rules = roundRules(policy, plan.kind);
    const { urgent, others } = queue.take(step, plan.takeGroups);
    const taken = [...urgent, ...others];
    const fresh = groups
      .slice(next, next + plan.newGroups)
      .map((lengths, index) => new ReplayedGroup(next + index, lengths));
    next += fresh.length;
    fresh.forEach(begin);
    const [first, rest] = rules.reservesTaken ? [taken, fresh] : [urgent, [...others, ...fresh]];
    const accepted = first.slice(0, plan.neededGroups);
    accepted.push(...selectShortest(rest, plan.neededGroups - accepted.length));
    let roundTokens = 0;
    let made = 0;
    for (const group of accepted) {
      group.trainedIn = step;
      roundTokens = Math.max(roundTokens, group.left);
      sums.samples += group.lengths.length;
      sums.tokens += group.total;
      sums.offPolicy += group.made;
      made += group.total - group.made;
      if (group.made > 0) versionSpan = Math.max(versionSpan, step - group.firstStep);
    }
    const isCut = ({ trainedIn }: ReplayedGroup): boolean => trainedIn === 0;
    const cut = { taken: taken.filter(isCut), fresh: fresh.filter(isCut) };
    for (const group of [...cut.taken, ...cut.fresh]) {
      made += group.run(roundTokens, step);
      if (rules.onCut === 'discard') {
        sums.wasted += group.made;
        group.redraw();
        begin(group);
      }
    }
    queue.add(step, cut.taken, cut.fresh, rules);
    sums.steps += 1;
    sums.time += time(roundTokens, made);
    if (next < groups.length) within = { ...sums };
    yield;
  }
  const lengthBias = ratio(sums.tokens * begun.samples, sums.samples * begun.tokens, 1);
  return { steps: sums.steps, ...toOutcome(since(within ?? sums, before)), lengthBias, versionSpan };
}

/** Selects the groups that end first, the earlier ones of those that end at the same token. */
function selectShortest(groups: readonly ReplayedGroup[], count: number): readonly ReplayedGroup[] {
  if (count >= groups.length) return groups;
  // A replay spends much of its time here: sorted numbers are much faster than sorted groups.
  const lefts = new Float64Array(groups.length);
  for (let index = 0; index < groups.length; index++) lefts[index] = groups[index]!.left;
  lefts.sort();
  const longest = lefts[count - 1] ?? -1;
  let ties = count - lefts.indexOf(longest);
  return groups.filter(({ left }) => left < longest || (left === longest && ties-- > 0));
}

/** Returns the sums of the steps after `before`, or of all steps if there are none after `before`. */
function since(end: Sums, before: Sums | undefined): Sums {
  if (before === undefined || before.steps >= end.steps) return end;
  const names = Object.keys(end) as (keyof Sums)[];
  return Object.fromEntries(names.map((name) => [name, end[name] - before[name]])) as unknown as Sums;
}

function toOutcome(counted: Sums): Omit<WhatIfOutcome, 'steps' | 'lengthBias' | 'versionSpan'> {
  return {
    stepTime: ratio(counted.time, counted.steps),
    tokensPerTime: ratio(counted.tokens, counted.time),
    offPolicyShare: ratio(counted.offPolicy, counted.tokens),
    wasteShare: ratio(counted.wasted, counted.wasted + counted.tokens),
  };
}

function ratio(part: number, whole: number, ofNothing = 0): number {
  return whole === 0 ? ofNothing : part / whole;
}
