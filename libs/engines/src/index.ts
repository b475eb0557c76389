export const placeholder_engines = 'engines';
