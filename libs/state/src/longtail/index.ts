export * from './longtail.store';
