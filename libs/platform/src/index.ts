export const placeholder_platform = 'platform';
