export * from './dispatch-order';
