import type { IncomingMessage } from 'node:http';

/** A request target that is no path, such as `http://[/`, ends Express before any handler: it becomes a path. */
export function useValidTarget(request: IncomingMessage): void {
  const { url = '' } = request;
  if (url.startsWith('/')) return;
  const target = URL.canParse(url) ? new URL(url) : undefined;
  request.url = target ? target.pathname + target.search : '/invalid-request-target';
}
