import type { IncomingMessage, ServerResponse } from 'node:http';

/** Time for which browsers keep the answer of a preflight, seconds. */
const PREFLIGHT_MAX_AGE = '600';

/**
 * Sets the headers of CORS by which pages of other origins may read a response, and answers the preflights of browsers.
 * @param origins for example `https://app.example.org`; `*`: all; an empty list: no headers are set
 * @returns whether the request was a preflight, and is answered
 */
export function allowOrigins(request: IncomingMessage, response: ServerResponse, origins: readonly string[]): boolean {
  const { origin, 'access-control-request-method': method, 'access-control-request-headers': names } = request.headers;
  if (origins.length === 0) return false;
  response.setHeader('vary', 'Origin');
  if (origin === undefined || !isAllowedOrigin(origin, origins)) return false;
  response.setHeader('access-control-allow-origin', origins.includes('*') ? '*' : origin);
  response.setHeader('access-control-expose-headers', '*');
  if (request.method !== 'OPTIONS' || method === undefined) return false;
  response.setHeader('access-control-allow-methods', 'GET, POST, PUT, DELETE');
  if (names !== undefined) response.setHeader('access-control-allow-headers', names);
  response.setHeader('access-control-max-age', PREFLIGHT_MAX_AGE);
  response.writeHead(204).end();
  return true;
}

export function isAllowedOrigin(origin: string, origins: readonly string[]): boolean {
  return origins.includes('*') || origins.includes(origin);
}
