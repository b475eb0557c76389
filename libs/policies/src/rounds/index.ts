export type { PlanProgress } from '../forming/form-round';
export { computeLatestEnd, type LatestEnd, type OpenRequest, type UnknownEnd } from './latest-end';
export * from './plan-round';
