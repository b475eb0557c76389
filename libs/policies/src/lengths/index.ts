export * from './length-presets';
export * from './random-stream';
export * from './response-length';
