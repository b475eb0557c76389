export type { PlanProgress } from '../forming/form-round';
export * from './plan-round';
