export * from './pool-directory';
export * from './pool.store';
