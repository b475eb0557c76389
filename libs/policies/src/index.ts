export * from './admission';
export * from './ledger';
export * from './over-provision';
export * from './rebalance';
export * from './rounds';
export * from './routing';
export * from './tail';
export * from './what-if';
