export * from './length-presets';
export * from './length-trace';
export * from './random-stream';
export * from './response-length';
