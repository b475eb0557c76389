export * from './ledger-counts';
