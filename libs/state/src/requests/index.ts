export * from './request.store';
export * from './request.types';
