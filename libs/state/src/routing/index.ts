export * from './grants';
export * from './pool-directory';
export * from './routing.store';
export * from './routing.types';
