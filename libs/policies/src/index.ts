export * from './admission/adaptive-limit';
export * from './ledger';
export * from './over-provision';
export * from './rebalance';
export * from './rounds';
export * from './routing';
export * from './tail';
export * from './what-if/what-if';
