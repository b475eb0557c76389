export * from './request.store';
