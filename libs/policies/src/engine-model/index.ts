export * from './engine-model';
export * from './engine-parameters';
