export * from './admission';
export * from './engine-model';
export * from './lengths';
export * from './routing';
export * from './rounds';
