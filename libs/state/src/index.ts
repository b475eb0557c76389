export * from './redis';
export * from './scripts/script-loader';
export * from './scripts/script-runner';
