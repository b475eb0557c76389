import type { ServerResponse } from 'node:http';
import { type BroomwagonError, httpStatusOf } from '@broomwagon/contracts';
import { isBegun } from './silence-keeper';

/** Answers with JSON, if the connection is still there. */
export function sendJson(response: ServerResponse, status: number, body: object): void {
  if (response.destroyed || (response.headersSent && !isBegun(response))) return;
  const bytes = Buffer.from(JSON.stringify(body));
  if (isBegun(response)) {
    response.end(bytes);
    return;
  }
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length }).end(bytes);
}

/** An error in the form of SGLang and OpenAI: message, type, param and HTTP status; `retryable` is ours. */
export function errorBody(error: BroomwagonError): object {
  const { code, message, retryable, field } = error;
  const number = code === 'MODEL_NOT_FOUND' ? 'model_not_found' : httpStatusOf(code);
  return { message, type: code, code: number, param: field ?? null, retryable };
}
