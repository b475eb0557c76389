export * from './checkpoint.store';
export * from './checkpoint.types';
