import type { IncomingMessage, ServerResponse } from 'node:http';

/** Answers one method and path. */
export type Route = (
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
) => void | Promise<void>;
