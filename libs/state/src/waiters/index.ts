export * from './waiter.store';
