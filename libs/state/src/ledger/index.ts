export * from './ledger.store';
export * from './prompt-memory.store';
