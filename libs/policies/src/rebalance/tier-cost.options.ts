import type { RebalanceSettings } from '@broomwagon/contracts';
import type { MoveCostModel } from './move-cost';
import type { RebalanceRequest } from './rebalance.types';
import type { StepModel } from './tier-gain';
import { DEFAULT_TIERS } from './tiers';

/** Parameters of {@link planTierCost}; README.md describes when to change them. */
export interface TierCostOptions
  extends MoveCostModel, StepModel, Partial<Omit<Pick<RebalanceSettings, keyof typeof TIER_COST_DEFAULTS>, 'tiers'>> {
  /** Descending. */
  tiers?: readonly number[];
}
export type TierCostSettings = Required<Omit<TierCostOptions, 'transfer'>> & MoveCostModel;

export const TIER_COST_DEFAULTS = {
  tiers: DEFAULT_TIERS,
  minGainRatio: 2,
  pauseSeconds: 0,
  maxMovesPerRequest: 2,
  minMoveIntervalMs: 60_000,
  minRemainingTokens: 256,
} as const;

/** False for a request that is nearly done, or was moved too often or too recently. */
export function mayMove(request: RebalanceRequest, settings: TierCostSettings): boolean {
  return (
    request.moves < settings.maxMovesPerRequest &&
    (request.sinceMoveMs ?? Infinity) >= settings.minMoveIntervalMs &&
    (request.phase !== 'running' || request.remainingTokens >= settings.minRemainingTokens)
  );
}
