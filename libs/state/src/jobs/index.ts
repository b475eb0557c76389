export * from './deletion.store';
export * from './job.store';
