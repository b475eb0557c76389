export * from './length-presets';
