export type { PlanProgress } from './form-round';
export * from './plan-round';
export * from './round-terms';
