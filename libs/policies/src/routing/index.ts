export * from './least-inflight';
export * from './routing-model';
export * from './waiting-lanes';
