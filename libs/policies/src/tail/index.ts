export * from './check-policy';
export * from './drip-count';
export * from './pin-step';
export * from './quotas';
export * from './round-rules';
export * from './tail-choice';
export * from './tail-rule';
export * from './tail-rules';
