export * from './admission.types';
export * from './session-admission';
