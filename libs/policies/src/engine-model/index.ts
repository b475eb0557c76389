export * from './engine-model';
export * from './engine-parameters';
export * from './lockstep-engines';
export * from './min-heap';
