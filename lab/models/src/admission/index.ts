export * from './slow-start';
