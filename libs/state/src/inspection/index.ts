export * from './inspection.store';
