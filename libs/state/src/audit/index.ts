export * from './findings';
export { keysBelow } from './key-scan';
export * from './pool-audit';
export type { RoutingCounts } from './routing-audit';
