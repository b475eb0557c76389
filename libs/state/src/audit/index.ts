export * from './findings';
export * from './pool-audit';
export type { RoutingCounts } from './routing-audit';
