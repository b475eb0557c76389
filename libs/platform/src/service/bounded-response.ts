import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

/**
 * Resolves when the caller has read all written bytes, or has closed the connection.
 * @param stalledMs time without a read after which `cut` is called, milliseconds; absent: no limit here
 * @param cut ends the response
 */
export async function drained(
  response: ServerResponse,
  stalledMs?: number,
  cut: () => void = () => response.destroy(),
): Promise<void> {
  const timer = stalledMs === undefined ? undefined : setTimeout(cut, stalledMs);
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  } finally {
    clearTimeout(timer);
    settled.abort();
  }
}

/**
 * Writes a part of a response, and waits until the caller has read it.
 * @param stalledMs see {@link drained}
 * @returns false if the connection is closed
 */
export async function writePart(response: ServerResponse, part: string | Buffer, stalledMs?: number): Promise<boolean> {
  if (response.destroyed) return false;
  if (!response.write(part)) await drained(response, stalledMs);
  return !response.destroyed;
}
