import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { BroomwagonError } from '@broomwagon/contracts';
import { useValidTarget } from '@broomwagon/platform';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { GatewayConfig } from '../gateway.config';
import { DataPlane } from './data-plane';
import { errorBody, sendJson } from './send-json';

/** Maximum size of all headers of a request, bytes: enough for a JWT and the cookies of a proxy. */
const MAX_HEADER_BYTES = 32_768;
/**
 * Maximum number of headers. Node drops further headers in silence, so a request with this number of headers is
 * refused.
 */
const MAX_HEADERS = 256;
const HEADERS_TIMEOUT_MS = 10_000;
/** Interval at which connections with late headers or bodies are closed, milliseconds; the default of Node is 30 s. */
const LATE_CHECKED_EVERY_MS = 2_000;
/** Time after which a refused connection is closed, milliseconds. */
const REFUSAL_READ_MS = 1_000;
/** Status by the code of an error of Node's parser; 400 for all other errors. */
const PARSER_STATUS: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };
const REASONS: Record<number, string> = {
  400: 'The request is not valid HTTP',
  408: 'The request did not arrive in time',
  431: `A request has at most ${MAX_HEADERS - 1} headers of ${MAX_HEADER_BYTES} bytes in all`,
};

/** Takes requests of the data plane from the server of Nest before Express sees them. */
export function gatewayHttp(config: GatewayConfig) {
  return {
    options: { bodyParser: false },
    configure(application: NestExpressApplication): void {
      const server = application.getHttpServer() as Server;
      const plane = application.get(DataPlane);
      const [nest] = server.listeners('request') as RequestListener[];
      server.removeAllListeners('request');
      server.on('request', (request: IncomingMessage, response: ServerResponse) => {
        useValidTarget(request);
        if (request.rawHeaders.length >= 2 * MAX_HEADERS) {
          response.setHeader('Connection', 'close');
          sendJson(response, 431, refusal(431));
        } else if (!plane.handle(request, response)) nest!(request, response);
      });
      server.on('clientError', refuseConnection);
      // Options of createServer, which Nest does not pass on; Node reads them from the server.
      Object.assign(server, {
        maxHeaderSize: MAX_HEADER_BYTES,
        connectionsCheckingInterval: LATE_CHECKED_EVERY_MS,
      });
      server.maxHeadersCount = MAX_HEADERS;
      // Trainers keep their connections open: the number of requests on one connection has no limit.
      server.maxRequestsPerSocket = 0;
      // A response may take hours; only the receipt of a request has a time limit.
      server.timeout = 0;
      server.headersTimeout = HEADERS_TIMEOUT_MS;
      server.requestTimeout = config.bodyTimeoutMs;
      server.keepAliveTimeout = config.keepAliveTimeoutMs;
    },
  };
}

/** Answers a request that Node's parser has refused, unless a response has started, and closes the connection. */
function refuseConnection(error: NodeJS.ErrnoException, socket: Duplex & { _httpMessage?: ServerResponse }): void {
  // The rest of the request still arrives after its answer.
  if (socket.writableEnded) return;
  if (!socket.writable || socket._httpMessage?.headersSent || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = PARSER_STATUS[error.code ?? ''] ?? 400;
  const body = JSON.stringify(refusal(status));
  const head = [
    `HTTP/1.1 ${status} Refused`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // The connection is closed later: if unread bytes are left at the close, the client loses the answer.
  setTimeout(() => socket.destroy(), REFUSAL_READ_MS).unref();
}

function refusal(status: number): object {
  const error = new BroomwagonError(status === 431 ? 'PAYLOAD_TOO_LARGE' : 'VALIDATION_FAILED', REASONS[status]!);
  return { error: { ...errorBody(error), code: status } };
}
