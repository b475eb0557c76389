export * from './choose-server';
export * from './hash-ring';
export * from './restrictions';
export * from './routing-books';
export * from './routing-model';
export * from './routing-model.types';
export * from './routing-order';
export * from './waiting-lanes';
