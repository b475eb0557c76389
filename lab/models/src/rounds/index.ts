export * from './round-model';
export * from './round-model.types';
