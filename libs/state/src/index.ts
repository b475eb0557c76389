export * from './redis';
export * from './scripts/script-loader';
export * from './scripts/script-runner';
export * from './payload';
export * from './routing';
export * from './requests';
export * from './rounds';
export * from './aborts';
