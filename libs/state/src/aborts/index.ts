export * from './abort.store';
export * from './abort.types';
