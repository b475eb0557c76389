import { highestTier } from './tiers';
import type { PlannedServer } from './planned-server';

/** Time of a decode step: `stepBaseSeconds` + `stepPerSequenceSeconds` x tier. */
export interface StepModel {
  stepBaseSeconds: number;
  stepPerSequenceSeconds: number;
}

/** Time of a decode step at a batch tier, seconds. */
export function tierSeconds(tier: number, { stepBaseSeconds, stepPerSequenceSeconds }: StepModel): number {
  return stepBaseSeconds + stepPerSequenceSeconds * tier;
}

/**
 * Returns the wall time that is saved when no server is above tier `target`, seconds. Without moves, the slowest server
 * passes through each higher tier until enough requests have ended, with the slower steps of that tier.
 */
export function tierGain(
  servers: readonly PlannedServer[],
  target: number,
  tiers: readonly number[],
  steps: StepModel,
): number {
  const tierNow = highestTier(servers, tiers);
  const levels = [...tiers, tierNow]
    .filter((tier) => tier >= target && tier <= tierNow)
    .sort((one, other) => one - other);
  let seconds = 0;
  for (let index = 1; index < levels.length; index += 1) {
    const [lower, upper] = [levels[index - 1] as number, levels[index] as number];
    const stepsAbove = servers.reduce((most, server) => Math.max(most, server.stepsUntil(lower)), 0);
    seconds += (tierSeconds(upper, steps) - tierSeconds(lower, steps)) * stepsAbove;
  }
  return seconds;
}
