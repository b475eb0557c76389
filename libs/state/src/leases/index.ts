export * from './grants';
