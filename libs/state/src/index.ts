export const placeholder_state = 'state';
