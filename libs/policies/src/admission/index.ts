export * from './adaptive-limit';
