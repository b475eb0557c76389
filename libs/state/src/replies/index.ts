export * from './reply.store';
