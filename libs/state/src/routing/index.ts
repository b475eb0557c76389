export * from './routing.store';
export * from './routing.types';
