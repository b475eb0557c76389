export * from './claim-turns';
