export * from './grants';
export * from './pool-directory';
export * from './pool.store';
export * from './routing.store';
export * from './routing.types';
export * from './server.store';
