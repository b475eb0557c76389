export * from './adaptive-limit';
export * from './slow-start';
