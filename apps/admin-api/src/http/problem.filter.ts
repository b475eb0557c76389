import {
  Catch,
  HttpException,
  Logger,
  ServiceUnavailableException,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import {
  API_ROOT,
  BroomwagonError,
  ERROR_CODES,
  getHttpStatus,
  type Problem,
  RENAMED_ROUTES,
  ROUTES,
} from '@broomwagon/contracts';
import type { Request, Response } from 'express';
import { getRequestId } from './request-id';

/** Retry-After of 429 and 503 for an error without `retryAfterMs`, milliseconds. */
const RETRY_AFTER_MS = 1_000;
const METHODS = new Map<string, string[]>();
for (const { method, path } of ROUTES) METHODS.set(path, [...(METHODS.get(path) ?? []), method]);
const PATHS = [...METHODS].map(([path, methods]) => {
  const pattern = `^${API_ROOT}${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`;
  return { path, methods, exact: new RegExp(pattern), anyCase: new RegExp(pattern, 'i') };
});

/** Answers every error with problem details (RFC 9457). */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  private readonly logger = new Logger(ProblemFilter.name);

  catch(cause: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<Request>();
    const response = http.getResponse<Response>();
    if (cause instanceof ServiceUnavailableException) {
      // A health route has its own form of answer.
      response.status(cause.getStatus()).json(cause.getResponse());
      return;
    }
    // The caller disconnected before the end of its body: nobody reads an answer.
    if (request.destroyed && (cause as { code?: unknown }).code === 'ECONNRESET') return;
    const error = typedError(cause, request, response);
    if (error.code === 'INTERNAL')
      this.logger.error({ err: cause, requestId: getRequestId(request) }, 'Request failed');
    if (response.headersSent) response.destroy();
    else sendProblem(error, request, response);
  }
}

function sendProblem(error: BroomwagonError, request: Request, response: Response): void {
  const { code, message, retryable, field, details } = error;
  const status = getHttpStatus(code);
  const isBusy = status === 429 || status === 503;
  const retryAfterMs = error.retryAfterMs ?? (isBusy ? RETRY_AFTER_MS : undefined);
  if (retryAfterMs !== undefined) response.set('Retry-After', String(Math.ceil(retryAfterMs / 1_000)));
  if (code === 'UNAUTHENTICATED') response.set('WWW-Authenticate', 'Bearer');
  const requestId = getRequestId(request);
  const problem: Problem = {
    type: `urn:broomwagon:error:${code}`,
    title: ERROR_CODES[code].about,
    status,
    detail: message,
    instance: requestId,
    code,
    retryable,
    ...(field === undefined ? {} : { field }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(details === undefined ? {} : { details }),
  };
  // The rest of a refused body is not read, so the connection cannot be used again.
  if (!request.complete) response.set('Connection', 'close');
  response.status(status).type('application/problem+json').set('X-Request-Id', requestId).send(JSON.stringify(problem));
}

function typedError(cause: unknown, request: Request, response: Response): BroomwagonError {
  if (cause instanceof BroomwagonError) return cause;
  // Errors of Nest and Express: an unknown path, a path that cannot be decoded, or a wrong header, for example Range.
  const status = cause instanceof HttpException ? cause.getStatus() : Number((cause as { status?: unknown }).status);
  if (status === 404) {
    const found = PATHS.find(({ exact }) => exact.test(request.path));
    if (!found) return new BroomwagonError('ROUTE_NOT_FOUND', describeUnknownPath(request.path));
    const { path, methods } = found;
    response.set('Allow', methods.join(', '));
    const renamed = RENAMED_ROUTES[`${request.method} ${path}`];
    const advice = renamed === undefined ? '' : `; the route is now ${renamed}`;
    return new BroomwagonError('METHOD_NOT_ALLOWED', `The path has the methods ${methods.join(', ')}${advice}`);
  }
  if (status >= 400 && status < 500) {
    return new BroomwagonError('VALIDATION_FAILED', 'The path or a header of the request is not valid');
  }
  return new BroomwagonError('INTERNAL', 'Internal error; the log has it with the id of this request');
}

/** Explains why a path has no route. */
function describeUnknownPath(path: string): string {
  if (path !== '/' && (path.endsWith('/') || path.includes('//'))) {
    return 'There is no such path: a segment is empty, and an empty id names nothing';
  }
  const similar = PATHS.find(({ anyCase }) => anyCase.test(path));
  return similar === undefined
    ? 'There is no such path'
    : `There is no such path: upper and lower case differ in paths; the route is ${API_ROOT}${similar.path}`;
}
