import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { Injectable, Logger } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { BroomwagonError, httpStatusOf, isBroomwagonError } from '@broomwagon/contracts';
import { FleetRoutes } from '../fleet/fleet-routes';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { ApiKeys } from '../keys/api-keys';
import { SglangControl } from '../sglang/sglang-control';
import { SglangGenerate } from '../sglang/sglang-generate';
import { VllmRoutes } from '../vllm/vllm-routes';
import { readObject } from './read-object';
import type { Exchange, Route } from './route';
import { errorBody, sendJson } from './send-json';

/** `/sessions/{id}` before any path names the session. */
const SESSION_PATH = /^\/sessions\/([^/]+)(\/.*)$/;
/** The only path with a parameter. */
const WORKER_PATH = /^\/workers\/(.+)$/;
const HEADERS_TIMEOUT_MS = 10_000;
/** Sent with 429 and 503 if the error names no time, milliseconds. */
const RETRY_AFTER_MS = 1_000;

/** Gives requests to the routes of the dialects; all others are for Nest. */
@Injectable()
export class DataPlane {
  private readonly logger = new Logger(DataPlane.name);
  private readonly routes: Map<string, Route>;
  private readonly paths: Set<string>;

  constructor(
    generate: SglangGenerate,
    control: SglangControl,
    vllm: VllmRoutes,
    fleet: FleetRoutes,
    private readonly keys: ApiKeys,
    private readonly metrics: GatewayMetrics,
    private readonly config: GatewayConfig,
  ) {
    this.routes = new Map(Object.entries({ ...generate.routes, ...control.routes, ...vllm.routes, ...fleet.routes }));
    this.paths = new Set([...this.routes.keys()].map((key) => key.slice(key.indexOf(' ') + 1)));
  }

  /** False for a path that is not of the data plane. */
  handle(request: IncomingMessage, response: ServerResponse): boolean {
    const [pathname = ''] = (request.url ?? '').split('?', 1);
    const [, session, rest] = SESSION_PATH.exec(pathname) ?? [];
    const [, pathId] = WORKER_PATH.exec(rest ?? pathname) ?? [];
    const path = pathId === undefined ? (rest ?? pathname) : '/workers/{id}';
    if (!this.paths.has(path)) return false;
    const key = `${request.method} ${path}`;
    response.once('close', () => this.metrics.requests.inc({ route: path, status: String(response.statusCode) }));
    void this.answer(this.routes.get(key), { request, response, session, pathId }).catch((error: unknown) =>
      this.refuse(error, request, response),
    );
    return true;
  }

  private async answer(
    route: Route | undefined,
    exchange: Pick<Exchange, 'request' | 'response' | 'pathId'> & { session?: string },
  ) {
    if (route === undefined) throw new BroomwagonError('METHOD_NOT_ALLOWED', 'The path has another method');
    const { request, session } = exchange;
    const pathId = exchange.pathId && decodeURIComponent(exchange.pathId);
    const caller = route.isPublic
      ? { tokenId: '', isOperator: false }
      : await this.keys.identify(request.headers.authorization);
    if (session !== undefined) caller.sessionId = decodeURIComponent(session);
    const { object: body, digest } = await readObject(request, this.config.maxBodyBytes);
    await route.answer({ ...exchange, pathId, caller, body, digest });
  }

  /** In the form of SGLang and OpenAI: message, type, param and HTTP status; `retryable` is ours. */
  private refuse(cause: unknown, request: IncomingMessage, response: ServerResponse): void {
    const error = typed(cause);
    if (error.code === 'INTERNAL') this.logger.error({ err: cause }, 'A request failed');
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const status = httpStatusOf(error.code);
    if (status === 429 || status === 503) {
      response.setHeader('Retry-After', Math.ceil((error.retryAfterMs ?? RETRY_AFTER_MS) / 1_000));
    }
    if (error.code === 'UNAUTHENTICATED') response.setHeader('WWW-Authenticate', 'Bearer');
    // What the client still sends of a body that was refused is not read.
    if (!request.complete) response.setHeader('Connection', 'close');
    sendJson(response, status, { error: errorBody(error) });
  }
}

function typed(cause: unknown): BroomwagonError {
  if (isBroomwagonError(cause)) return cause;
  if (cause instanceof URIError) return new BroomwagonError('VALIDATION_FAILED', 'The path is not a valid URL');
  return new BroomwagonError('INTERNAL', 'The request failed; see the log');
}

/** Takes requests of the data plane from the server of Nest before Express sees them. */
export function gatewayHttp(config: GatewayConfig) {
  return {
    options: { bodyParser: false },
    configure(application: NestExpressApplication): void {
      const server = application.getHttpServer() as Server;
      const plane = application.get(DataPlane);
      const [nest] = server.listeners('request') as RequestListener[];
      server.removeAllListeners('request');
      server.on('request', (request, response) => {
        if (!plane.handle(request, response)) nest!(request, response);
      });
      // A response may take hours; only what the client sends has a limit of time.
      server.timeout = 0;
      server.headersTimeout = HEADERS_TIMEOUT_MS;
      server.requestTimeout = config.bodyTimeoutMs;
      server.keepAliveTimeout = config.keepAliveTimeoutMs;
    },
  };
}
