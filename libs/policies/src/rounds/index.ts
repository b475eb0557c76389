export * from './plan-round';
export * from './round-model';
export * from './round-model.types';
export * from './round-terms';
