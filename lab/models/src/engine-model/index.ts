export * from './engine-model';
export * from './lockstep-engines';
export * from './min-heap';
export * from './step-seconds';
export * from './engine-parameters';
