export * from './worker.store';
