/** Name of a session at the load-balancer: keys that choose the same name have separate sessions. */
export function boundSession(sessionId: string, tokenId: string): string {
  return tokenId === '' ? sessionId : `${tokenId}/${sessionId}`;
}
