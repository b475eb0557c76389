export * from './job.store';
