export type { Finding } from './findings';
export * from './pool-audit';
export type { RoutingCounts } from './routing-audit';
