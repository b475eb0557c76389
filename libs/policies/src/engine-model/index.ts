export * from './engine-parameters';
