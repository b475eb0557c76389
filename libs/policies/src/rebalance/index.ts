export * from './estimate-remaining';
export * from './rebalance.types';
export * from './tier-cost';
export { TIER_COST_DEFAULTS, type TierCostOptions } from './tier-cost.options';
export { planTierMin } from './tier-min';
export * from './trigger';
export { checkTiers } from './tiers';
