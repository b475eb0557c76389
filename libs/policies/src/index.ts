export * from './admission';
export * from './engine-model';
export * from './ledger';
export * from './lengths';
export * from './over-provision';
export * from './rebalance';
export * from './rounds';
export * from './tail';
