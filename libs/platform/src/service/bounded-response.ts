import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

/**
 * Resolves when the caller has read all written bytes, or has gone away.
 * @param stalledMs time without a read after which the caller is cut off; absent: the response has its own limit
 * @param cut cuts the caller off
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
 * @returns false if the caller has gone away
 */
export async function writePart(response: ServerResponse, part: string | Buffer, stalledMs?: number): Promise<boolean> {
  if (response.destroyed) return false;
  if (!response.write(part)) await drained(response, stalledMs);
  return !response.destroyed;
}
