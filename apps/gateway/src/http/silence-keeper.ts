import type { ServerResponse } from 'node:http';

/** Answers whose status 200 is sent, and whose JSON is to come. */
const begun = new WeakSet<ServerResponse>();

/** Whether only white space of the answer is sent, so that its JSON may follow. */
export function isBegun(response: ServerResponse): boolean {
  return begun.has(response);
}

/**
 * Begins an answer after a silence, and sends white space, which JSON may begin with, after each further one: proxies
 * close connections that bring nothing. 0: never.
 * @param beforeHeaders sets the headers whose values are known then
 * @returns ends it
 */
export function keepFromSilence(response: ServerResponse, silenceMs: number, beforeHeaders: () => void): () => void {
  if (silenceMs === 0) return () => undefined;
  const timer = setInterval(() => {
    if (response.destroyed) return;
    if (!response.headersSent) {
      beforeHeaders();
      response.writeHead(200, { 'content-type': 'application/json' });
      begun.add(response);
    }
    response.write(' ');
  }, silenceMs);
  return () => clearInterval(timer);
}
