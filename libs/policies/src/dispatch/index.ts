export * from './dispatch-order';
export * from './prompt-lengths';
