import type { ServerResponse } from 'node:http';

/** Answers whose status 200 is sent, and whose JSON is to come. */
const begun = new WeakSet<ServerResponse>();

/** Whether only white space of the answer is sent, so that its JSON may follow. */
export function isBegun(response: ServerResponse): boolean {
  return begun.has(response);
}

/** Sends the status of an answer whose JSON is to come. */
export function beginJson(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  begun.add(response);
}

/**
 * Begins a response after a silence, and writes a filler, which its reader ignores, after each further one: proxies
 * close connections that bring nothing.
 * @param silenceMs 0: never
 * @param begin sends status and headers
 * @returns the timer: cleared at the end, refreshed by what is written; undefined: none
 */
export function keepFromSilence(
  response: ServerResponse,
  silenceMs: number,
  begin: () => void,
  filler: string,
): NodeJS.Timeout | undefined {
  if (silenceMs === 0) return undefined;
  return setInterval(() => {
    // A reader that takes nothing has more to read than this.
    if (response.destroyed || response.writableEnded || response.writableNeedDrain) return;
    if (!response.headersSent) begin();
    response.write(filler);
  }, silenceMs);
}
