export * from './estimate-remaining';
export * from './move-cost';
export * from './rebalance.types';
export * from './tier-cost';
export { TIER_COST_DEFAULTS, type TierCostOptions } from './tier-cost.options';
export * from './tier-min';
export * from './trigger';
export { checkTiers, DEFAULT_TIERS, tierOf } from './tiers';
