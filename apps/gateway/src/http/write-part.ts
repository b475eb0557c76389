import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

/**
 * Writes a part of a response, and waits until the client has taken most of it.
 * @returns false if the client has disconnected
 */
export async function writePart(response: ServerResponse, part: string | Buffer): Promise<boolean> {
  if (response.destroyed) return false;
  if (response.write(part)) return true;
  const waiting = new AbortController();
  const { signal } = waiting;
  await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  waiting.abort();
  return !response.destroyed;
}
