export { isPlainAcquire } from './plain-routing';
export * from './routing.store';
export * from './routing.types';
