import type { Server } from 'node:http';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Metrics, useValidTarget, PROJECT_ROOT } from '@broomwagon/platform';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { NextFunction, Request, Response } from 'express';
import helmet from 'helmet';
import { Logger } from '@nestjs/common';
import type { AdminApiConfig } from '../admin-api.config';
import { measureRequests } from './measure-requests';
import { RateLimits } from './rate-limits';

/** Maximum time for a whole request with its body, milliseconds. A slower caller is cut off. */
const REQUEST_MS = 30_000;
const HEADERS_MS = 10_000;
/** Idle timeout of connections, milliseconds. Common load balancers close idle connections first, after 60 s. */
const KEEP_ALIVE_MS = 75_000;
/** Sources that a page of the console may load: only files and replies of this server. */
const CONTENT_SECURITY_POLICY = {
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    // Mantine writes its colors into a style element.
    styleSrc: ["'self'", "'unsafe-inline'"],
    // Charts are saved as pictures from a blob.
    imgSrc: ["'self'", 'data:', 'blob:'],
    connectSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
};

/**
 * Routes without a rate limit: many requests from a node of Kubernetes must not fail the probes from the same address.
 */
const PROBES: ReadonlySet<string> = new Set(['/health', '/livez', '/readyz', '/startupz']);

/** Options of the HTTP server of admin-api. The token of a request is checked before its body is read. */
export function httpServer(config: AdminApiConfig) {
  return {
    options: { bodyParser: false },
    configure(application: NestExpressApplication): void {
      application.set('trust proxy', config.trustedProxies);
      application.disable('etag');
      routeExactly(application);
      application.use(measureRequests(application.get(Metrics)));
      application.use(helmet({ contentSecurityPolicy: CONTENT_SECURITY_POLICY }));
      application.use(limitAddresses(application.get(RateLimits)));
      serveConsole(application);
      const server = application.getHttpServer() as Server;
      server.prependListener('request', useValidTarget);
      server.requestTimeout = REQUEST_MS;
      server.headersTimeout = HEADERS_MS;
      server.keepAliveTimeout = KEEP_ALIVE_MS;
    },
  };
}

/**
 * Makes slashes at the end and the case of letters count: a path with an empty or misspelled segment must not reach a
 * route that means more than the caller has asked. The adapter of Nest has made the router of Express before any
 * setting of Express could be changed, so the router is changed itself.
 */
function routeExactly(application: NestExpressApplication): void {
  const { router } = application.getHttpAdapter().getInstance() as { router: object };
  Object.assign(router, { strict: true, caseSensitive: true });
}

/** Limits the rate of requests from each address: routes, files of the console, documents and metrics. */
function limitAddresses(limits: RateLimits) {
  return async (request: Request, _: Response, next: NextFunction): Promise<void> => {
    if (!PROBES.has(request.path)) await limits.takeOfAddress(request.ip ?? '');
    next();
  };
}

const CONSOLE_FOLDER = join(PROJECT_ROOT, 'dist/console');
const YEAR_MS = 31_536_000_000;

/**
 * Serves the console at `/`, without a token, because its files hold no data. Any other path goes to the routes. A
 * browser keeps files in `assets`, whose names have a hash of the contents, and asks again for all other files.
 */
function serveConsole(application: NestExpressApplication): void {
  if (!existsSync(CONSOLE_FOLDER)) {
    new Logger('console').warn(`There is no console: npm run build makes ${CONSOLE_FOLDER}`);
    return;
  }
  const assets = { index: false, immutable: true, maxAge: YEAR_MS, redirect: false } as const;
  application.useStaticAssets(join(CONSOLE_FOLDER, 'assets'), { ...assets, prefix: '/assets/' });
  application.useStaticAssets(CONSOLE_FOLDER, {
    redirect: false,
    setHeaders: (response) => response.setHeader('Cache-Control', 'no-cache'),
  });
}
