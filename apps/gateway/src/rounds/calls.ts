import type { IncomingMessage } from 'node:http';

/** Maximum time for the reply of an operation, in addition to its `waitMs`, milliseconds. */
export const CALL_TIMEOUT_MS = 10_000;
/** Maximum time for which a call is repeated in the middle of a response, milliseconds. */
export const REPEAT_MS = 30_000;

export function parseQuery({ url = '' }: IncomingMessage): URLSearchParams {
  const [, query = ''] = url.split('?', 2);
  return new URLSearchParams(query);
}
