export * from './abort.store';
