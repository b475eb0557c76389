import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** A client that takes nothing for this long is disconnected, milliseconds. */
const STALLED_MS = 300_000;

/**
 * Writes a part of a response, and waits until the client has taken most of it.
 * @returns false if the client has disconnected
 */
export async function writePart(response: ServerResponse, part: string | Buffer): Promise<boolean> {
  if (response.destroyed) return false;
  if (response.write(part)) return true;
  const waiting = new AbortController();
  const { signal } = waiting;
  const stalled = delay(STALLED_MS, undefined, { signal }).then(() => response.destroy());
  await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal }), stalled]);
  waiting.abort();
  return !response.destroyed;
}
