import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

/**
 * Resolves when the caller has read all written bytes, or has gone away.
 * @param stalledMs a caller that reads nothing for this long is cut off; absent: the response has its own limit
 */
export async function drained(response: ServerResponse, stalledMs?: number): Promise<void> {
  const timer = stalledMs === undefined ? undefined : setTimeout(() => response.destroy(), stalledMs);
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  } finally {
    clearTimeout(timer);
    settled.abort();
  }
}
