export * from './move.store';
export * from './move.types';
