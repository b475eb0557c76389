import type { ServerResponse } from 'node:http';

/** Whole JSON answer. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  sendBody(response, status, 'application/json', JSON.stringify(body));
}

export function sendBody(response: ServerResponse, status: number, contentType: string, body: string): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

/** An error as vLLM and OpenAI write it. */
export function errorBody(status: number, message: string) {
  return {
    error: { message, type: status < 500 ? 'BadRequestError' : 'InternalServerError', param: null, code: status },
  };
}

/** A request the simulated engine refuses with this status. */
export class RefusedError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}
