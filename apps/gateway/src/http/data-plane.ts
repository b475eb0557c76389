import type { IncomingMessage, ServerResponse } from 'node:http';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { BroomwagonError, includesRole, invalidField, isBroomwagonError } from '@broomwagon/contracts';
import { inSpan } from '@broomwagon/messaging';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { ApiKeys, type Caller } from '../keys/api-keys';
import { allowOrigins } from '../keys/cross-origin';
import { toCallerError } from '../keys/hidden-addresses';
import { cutIfStalled } from './client-connection';
import { readHeaderText } from './headers';
import { PathParser } from './path-parser';
import { readObject } from './read-object';
import { type Exchange, type Route, type ErrorForm, type RouteSource, ROUTE_SOURCES } from './route';
import { errorBody, sendJson, toHttpStatus } from './send-json';
import { isBegun } from './silence-keeper';

/** Paths of the Nest routes, as in every service. */
const METRICS_PATH = '/metrics';
const NEST_PATHS: ReadonlySet<string> = new Set(['/livez', '/readyz', '/startupz', METRICS_PATH]);
/** Label of requests whose path has no route: labels of metrics have few values. */
const UNKNOWN = 'unknown';
/** Time without a read after which a client is disconnected, milliseconds. */
const STALLED_MS = 300_000;
/** Retry-After of 429 and 503 if the error has none, milliseconds. */
const RETRY_AFTER_MS = 1_000;

/** Gives requests to the routes of the dialects; all other requests are for Nest. */
@Injectable()
export class DataPlane {
  private readonly logger = new Logger(DataPlane.name);
  private readonly routes: Map<string, Route>;
  /** One route of each path. */
  private readonly paths: Map<string, Route>;
  private readonly parser: PathParser;

  constructor(
    @Inject(ROUTE_SOURCES) private readonly sources: readonly RouteSource[],
    private readonly keys: ApiKeys,
    private readonly metrics: GatewayMetrics,
    private readonly config: GatewayConfig,
  ) {
    this.routes = new Map(sources.flatMap(({ routes }) => Object.entries(routes)));
    this.paths = new Map([...this.routes].map(([key, route]) => [key.slice(key.indexOf(' ') + 1), route]));
    this.parser = new PathParser(this.routes);
  }

  /** Handles a request. @returns false for a path of Nest */
  handle(request: IncomingMessage, response: ServerResponse): boolean {
    const { path, rest, session, pathId } = this.parser.parse(request);
    const ofPath = this.paths.get(path);
    if (ofPath === undefined && NEST_PATHS.has(path)) return this.refusesMetrics(path, request, response);
    if (allowOrigins(request, response, this.config.corsOrigins)) return true;
    const route = this.routes.get(`${request.method} ${path}`);
    const label = ofPath === undefined ? UNKNOWN : path;
    response.once('close', () => this.metrics.requests.inc({ route: label, status: String(response.statusCode) }));
    if (ofPath === undefined) {
      const error = new BroomwagonError('ROUTE_NOT_FOUND', 'There is no such path');
      this.refuse(error, request, response, this.sources.find(({ prefix }) => prefix && rest.startsWith(prefix)) ?? {});
      return true;
    }
    if (route === undefined) response.setHeader('Allow', this.listMethods(path));
    cutIfStalled(response, STALLED_MS);
    const answer = () => this.answer(route, { request, response, path, session, pathId });
    const traceparent = readHeaderText(request.headers, 'traceparent');
    const span = {
      traceparent,
      name: `${request.method} ${path}`,
      kind: 'server',
      attributes: { 'broomwagon.pool': this.config.pool, 'http.request.method': request.method, 'http.route': path },
      beginsTrace: path.endsWith('round.open'),
    } as const;
    void inSpan(span, answer).catch((error: unknown) => this.refuse(error, request, response, ofPath));
    return true;
  }

  /**
   * Refuses metrics to pages of other sites: a page could read the names of pools and servers through a host name of
   * its site.
   */
  private refusesMetrics(path: string, request: IncomingMessage, response: ServerResponse): boolean {
    if (path !== METRICS_PATH) return false;
    try {
      this.keys.checkSite(request.headers);
      return false;
    } catch (error) {
      this.refuse(error, request, response, {});
      return true;
    }
  }

  private listMethods(path: string): string {
    const methods = [...this.routes.keys()].map((key) => key.split(' ') as [string, string]);
    return methods.flatMap(([method, of]) => (of === path ? method : [])).join(', ');
  }

  private async answer(
    route: Route | undefined,
    exchange: Pick<Exchange, 'request' | 'response' | 'pathId'> & { path: string; session?: string },
  ) {
    if (route === undefined) throw new BroomwagonError('METHOD_NOT_ALLOWED', 'The path has another method');
    const { request, response, path, session } = exchange;
    const pathId = exchange.pathId && decodeURIComponent(exchange.pathId);
    const { isPublic, role = 'client', maxBodyBytes = this.config.maxBodyBytes } = route;
    const caller: Caller = isPublic ? { tokenId: '', role: 'client' } : await this.keys.identify(request.headers);
    if (!includesRole(caller.role, role)) throw new BroomwagonError('FORBIDDEN', `This needs the role ${role}`);
    if (session !== undefined) {
      const id = decodeURIComponent(session);
      if ((caller.sessionId ?? id) !== id) throw invalidField('session', 'of the path is not that of the key');
      caller.sessionId = id;
      caller.isPathSession = true;
    }
    // Node discards a body that is not read: a body without a key costs neither memory nor a parse.
    const isRead = maxBodyBytes > 0 && !isPublic && request.method !== 'GET';
    const read = isRead ? await readObject(request, maxBodyBytes, path) : undefined;
    const { object: body = {}, parent, bytes = Buffer.alloc(0), digest = () => '' } = read ?? {};
    caller.parentSessionId = parent;
    try {
      await route.answer({ request, response, pathId, caller, body, bytes, digest });
    } catch (error) {
      throw isBroomwagonError(error) ? toCallerError(error, caller.role) : error;
    }
  }

  /** Answers with an error, in the form of its path. */
  private refuse(cause: unknown, request: IncomingMessage, response: ServerResponse, route: ErrorForm): void {
    const error = typed(cause);
    if (error.code === 'INTERNAL') this.logger.error({ err: cause }, 'A request failed');
    if ((response.headersSent && !isBegun(response)) || response.destroyed) {
      response.destroy();
      return;
    }
    const status = toHttpStatus(error);
    if (!response.headersSent) {
      if (status === 429 || status === 503 || error.retryAfterMs !== undefined) {
        response.setHeader('Retry-After', Math.ceil((error.retryAfterMs ?? RETRY_AFTER_MS) / 1_000));
      }
      if (error.code === 'UNAUTHENTICATED') response.setHeader('WWW-Authenticate', 'Bearer');
      // The rest of a refused body is not read.
      if (!request.complete) response.setHeader('Connection', 'close');
    }
    const body = route.errorBody?.(error) ?? errorBody(error);
    sendJson(response, status, { ...(route.hasErrorType && { type: 'error' }), error: body });
  }
}

function typed(cause: unknown): BroomwagonError {
  if (isBroomwagonError(cause)) return cause;
  if (cause instanceof URIError) return new BroomwagonError('VALIDATION_FAILED', 'The path is not a valid URL');
  return new BroomwagonError('INTERNAL', 'The request failed; see the log');
}
