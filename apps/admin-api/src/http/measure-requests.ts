import type { Metrics } from '@broomwagon/platform';
import type { NextFunction, Request, Response } from 'express';

/** Label for files of the console and unknown paths, which have no route. */
const NO_ROUTE = 'other';

/**
 * Measures requests: duration by route template, method and class of the status, and the number in flight. A stream of
 * events is not measured, because its reader decides how long the stream lasts.
 */
export function measureRequests(metrics: Metrics) {
  const duration = metrics.histogram(
    'http_request_seconds',
    'Time from the head of a request to the end of its reply; status aborted: the caller went away',
    ['method', 'route', 'status'],
  );
  const inFlight = metrics.gauge(
    'http_requests_in_flight',
    'Requests without the end of their replies, with the open streams of events (event_readers)',
  );
  return (request: Request, response: Response, next: NextFunction): void => {
    const startedAtMs = performance.now();
    inFlight.inc();
    response.once('close', () => {
      inFlight.dec();
      if (String(response.getHeader('Content-Type')).startsWith('text/event-stream')) return;
      const { path = NO_ROUTE } = (request.route ?? {}) as { path?: string };
      const route = path.replaceAll(/:(\w+)/g, '{$1}');
      const status = response.writableFinished ? `${Math.floor(response.statusCode / 100)}xx` : 'aborted';
      duration.observe({ method: request.method, route, status }, (performance.now() - startedAtMs) / 1_000);
    });
    next();
  };
}
