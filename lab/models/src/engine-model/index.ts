export * from './engine-model';
export * from './engine-model.types';
export * from './kv-blocks';
export * from './lockstep-engines';
export * from './min-heap';
export * from './engine-parameters';
