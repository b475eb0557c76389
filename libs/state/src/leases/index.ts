export * from './grants';
export * from './lease.store';
