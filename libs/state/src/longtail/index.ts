export * from './longtail.store';
export * from './longtail.types';
