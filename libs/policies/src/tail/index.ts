export * from './check-policy';
export * from './drip-count';
export * from './equal-rewards';
export * from './quotas';
export * from './round-rules';
export * from './tail-choice';
export * from './tail-rule';
export * from './tail-rules';
