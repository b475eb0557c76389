import type { RebalanceSettings } from '@broomwagon/contracts';
import { kvTokensOf, moveCosts, type MoveCostModel } from './move-cost';
import type { Victim } from './place-victims';
import type { PlannedServer } from './planned-server';
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

/** A request that is nearly done, or was moved often or lately, stays. */
export function mayMove(request: RebalanceRequest, settings: TierCostSettings): boolean {
  return (
    request.moves < settings.maxMovesPerRequest &&
    (request.sinceMoveMs ?? Infinity) >= settings.minMoveIntervalMs &&
    (request.phase !== 'running' || request.remainingTokens >= settings.minRemainingTokens)
  );
}

export function asVictim(request: RebalanceRequest, from: PlannedServer, model: MoveCostModel): Victim {
  const { transferSeconds, recomputeSeconds } = moveCosts(request, model);
  const isKept = from.server.kvStore !== undefined && transferSeconds < recomputeSeconds;
  return {
    request,
    from,
    transferSeconds,
    recomputeSeconds,
    leastSeconds: isKept ? transferSeconds : recomputeSeconds,
    endTokens: kvTokensOf(request) + request.remainingTokens,
  };
}
