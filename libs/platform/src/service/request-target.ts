import type { IncomingMessage } from 'node:http';

/**
 * Replaces a request target that is no path, such as `http://[/`, by a path, because Express would fail before any
 * handler.
 */
export function useValidTarget(request: IncomingMessage): void {
  const { url = '' } = request;
  if (url.startsWith('/')) return;
  const target = URL.canParse(url) ? new URL(url) : undefined;
  request.url = target ? target.pathname + target.search : '/invalid-request-target';
}
