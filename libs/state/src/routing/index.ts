export * from './grants';
export { isPlainAcquire } from './plain-routing';
export * from './pool-directory';
export * from './pool.store';
export * from './routing.store';
export * from './routing.types';
export * from './server.store';
