export * from './snapshot.store';
export * from './snapshot.types';
