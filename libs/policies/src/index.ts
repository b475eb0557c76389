export const placeholder_policies = 'policies';
