export * from './what-if';
