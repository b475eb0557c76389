export * from './removal.store';
