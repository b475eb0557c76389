export * from './session.store';
