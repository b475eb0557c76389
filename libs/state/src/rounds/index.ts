export * from './event-outbox';
export * from './round.store';
export * from './round.types';
