export const placeholder_messaging = 'messaging';
