export * from './plan-round';
