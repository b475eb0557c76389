import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

/** A caller that reads nothing for this long is cut off, milliseconds. */
const STALLED_MS = 30_000;

/** Settles when the caller has read what was written, or has gone away; cuts a caller off that reads nothing. */
export async function drained(response: ServerResponse, stalledMs = STALLED_MS): Promise<void> {
  const timer = setTimeout(() => response.destroy(), stalledMs);
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  } finally {
    clearTimeout(timer);
    settled.abort();
  }
}
