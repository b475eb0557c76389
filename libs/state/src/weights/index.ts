export * from './weight.store';
