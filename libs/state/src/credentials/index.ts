export * from './credential.store';
