export * from './prompt-lengths';
