export * from './move.store';
