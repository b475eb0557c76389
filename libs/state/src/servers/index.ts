export * from './server.store';
