import type { ServerResponse } from 'node:http';

/** Sends a whole JSON answer. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  sendBody(response, status, 'application/json', JSON.stringify(body));
}

export function sendBody(response: ServerResponse, status: number, contentType: string, body: string): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

/** Body of an error, as vLLM and OpenAI write it. */
export function errorBody(status: number, message: string) {
  return {
    error: { message, type: status < 500 ? 'BadRequestError' : 'InternalServerError', param: null, code: status },
  };
}

/** Refusal of a request by the simulated engine, with this status. */
export class RefusedError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}
