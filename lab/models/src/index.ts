export * from './admission';
export * from './engine-model';
export * from './jobs';
export * from './ledger';
export * from './lengths';
export * from './routing';
export * from './rounds';
export * from './sessions';
