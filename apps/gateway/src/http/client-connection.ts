import type { ServerResponse } from 'node:http';

/**
 * Disconnects a client that has read nothing of what is written for `stalledMs`. A response with nothing to take, such
 * as one that waits for a server, has no limit of time.
 */
export function cutIfStalled(response: ServerResponse, stalledMs: number): void {
  response.setTimeout(stalledMs, () => {
    if (response.writableLength > 0) response.destroy();
  });
}

/** Calls the listener when the response is closed. `isDelivered`: the client's connection has taken all of it. */
export function whenClosed(response: ServerResponse, listener: (isDelivered: boolean) => void): void {
  let isDelivered = false;
  const { socket } = response.req;
  // Node also emits it, and sets `writableFinished`, when the connection breaks while bytes of the end are left.
  response.prependOnceListener('finish', () => (isDelivered = !socket.destroyed));
  response.once('close', () => listener(isDelivered));
}
