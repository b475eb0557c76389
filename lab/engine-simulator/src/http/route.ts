import type { IncomingMessage, ServerResponse } from 'node:http';

/** Handler of one method and path. */
export type Route = (
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
) => void | Promise<void>;
