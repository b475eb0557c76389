export const placeholder_testing = 'testing';
