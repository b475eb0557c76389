export * from './routing-counts';
export * from './routing-grants';
export * from './routing-model';
export * from './routing-model.types';
export * from './waiting-lanes';
