export type { PlanProgress } from '../forming/form-round';
export * from './plan-round';
export * from './round-terms';
