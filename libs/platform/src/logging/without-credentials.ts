/** Replaces user and password in all addresses of a text. */
export function withoutCredentials(text: string): string {
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^/\s,]*@/gi, '$1***@');
}
