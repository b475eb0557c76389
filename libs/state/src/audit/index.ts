export { MOST_COUNTED_AT_ONCE } from './counter-audit';
export * from './findings';
export * from './pool-audit';
export type { RoutingCounts } from './routing-audit';
