import type { ServerResponse } from 'node:http';

/** Answers that have sent status 200, and send their JSON later. */
const begun = new WeakSet<ServerResponse>();

/** Whether only white space of the answer is sent, so that its JSON may follow. */
export function isBegun(response: ServerResponse): boolean {
  return begun.has(response);
}

/** Sends the status of an answer whose JSON follows later. */
export function beginJson(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  begun.add(response);
}

/**
 * Starts a response after a silence, and writes a filler, which readers ignore, after each further silence: proxies
 * close idle connections.
 * @param silenceMs 0: never
 * @param begin sends status and headers
 * @returns the timer: cleared at the end, refreshed by each write; undefined: no timer
 */
export function keepFromSilence(
  response: ServerResponse,
  silenceMs: number,
  begin: () => void,
  filler: string,
): NodeJS.Timeout | undefined {
  if (silenceMs === 0) return undefined;
  return setInterval(() => {
    // A reader that has stopped reading has unread bytes left: it needs no filler.
    if (response.destroyed || response.writableEnded || response.writableNeedDrain) return;
    if (!response.headersSent) begin();
    response.write(filler);
  }, silenceMs);
}
