export * from './estimate-remaining';
export type { MoveCostModel } from './move-cost';
export * from './plan-schedule';
export * from './rebalance.types';
export * from './tier-cost';
export { TIER_COST_DEFAULTS, type TierCostOptions } from './tier-cost.options';
export { planTierMin } from './tier-min';
export type { RebalanceTrigger } from './trigger';
export { checkTiers } from './tiers';
