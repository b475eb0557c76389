import type { RoundRules } from '@broomwagon/contracts';
import { NO_VERSION_SPAN } from './round-rules';

/** Age of a group that goes to the long-tail queue. */
export interface AgeingGroup {
  cuts: number;
  /** Step in which the group was first submitted. */
  firstStep: number;
  /** Weight version of the oldest kept token; undefined if no token is kept. */
  oldestVersion?: number;
}

/** Step of a group that no bound pins. */
export const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * Returns the step in which a group must be taken and run to its end at the latest, so that no bound is broken. One new
 * weight version a step is assumed. With more versions, `round.open` throws tokens away that have become too old.
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

/** Returns the samples to launch for a new group that needs `samples`. In binary, 1.1 x 10 is a little more than 11. */
export function launchedSamples(samples: number, rules: Pick<RoundRules, 'sampleOverProvision'>): number {
  return Math.ceil(rules.sampleOverProvision * samples - 1e-9);
}
