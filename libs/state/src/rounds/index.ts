export * from './fact-outbox';
export * from './round.store';
export * from './round.types';
