export * from './plan-round';
export * from './round-terms';
