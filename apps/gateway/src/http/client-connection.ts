import type { ServerResponse } from 'node:http';

/**
 * Disconnects a client that has not read the written bytes for `stalledMs`. A response without bytes to read, such as a
 * response that waits for a server, has no time limit.
 */
export function cutIfStalled(response: ServerResponse, stalledMs: number): void {
  response.setTimeout(stalledMs, () => {
    if (response.writableLength > 0) response.destroy();
  });
}

/**
 * Calls the listener when the response is closed. `isDelivered`: the connection of the client has taken the whole
 * response.
 */
export function whenClosed(response: ServerResponse, listener: (isDelivered: boolean) => void): void {
  let isDelivered = false;
  const { socket } = response.req;
  // Node also emits `finish`, and sets `writableFinished`, when the connection breaks while last bytes are left.
  response.prependOnceListener('finish', () => (isDelivered = !socket.destroyed));
  response.once('close', () => listener(isDelivered));
}
