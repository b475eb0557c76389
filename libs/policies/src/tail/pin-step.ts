import type { RoundRules } from '@broomwagon/contracts';
import { NO_VERSION_SPAN } from './round-rules';

/** A group as its bounds see it when it goes to the long-tail queue. */
export interface AgeingGroup {
  cuts: number;
  /** Step in which it was first submitted. */
  firstStep: number;
  /** Weight version of its oldest token that is kept; undefined without any. */
  oldestVersion?: number;
}

/** No step. */
export const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * Step from which a group must be taken and run to its end, so that no bound is broken. Weights are assumed to go one
 * version a step; if they go faster, `round.open` discards groups that have become too old.
 * @param round round that cut the group
 */
export function pinStep(
  group: AgeingGroup,
  round: { step: number; weightVersion: number },
  { maxCuts, maxAgeSteps, maxVersionSpan }: Pick<RoundRules, 'maxCuts' | 'maxAgeSteps' | 'maxVersionSpan'>,
): number {
  let step = NEVER;
  if (maxCuts > 0 && group.cuts >= maxCuts) step = round.step + 1;
  if (maxAgeSteps > 0) step = Math.min(step, group.firstStep + maxAgeSteps);
  if (maxVersionSpan !== NO_VERSION_SPAN && group.oldestVersion !== undefined) {
    step = Math.min(step, round.step + group.oldestVersion + maxVersionSpan - round.weightVersion);
  }
  return step;
}

/** Samples launched for a new group that needs `samples`. 1.1 x 10 is a little more than 11 in binary. */
export function launchedSamples(samples: number, rules: Pick<RoundRules, 'sampleOverProvision'>): number {
  return Math.ceil(rules.sampleOverProvision * samples - 1e-9);
}
