import type { ServerResponse } from 'node:http';
import { type BroomwagonError, type ErrorCode, httpStatusOf } from '@broomwagon/contracts';
import { isBegun } from './silence-keeper';

/** Answers with JSON, if the connection is still there. */
export function sendJson(response: ServerResponse, status: number, body: object): void {
  if (response.destroyed || (response.headersSent && !isBegun(response))) return;
  const text = JSON.stringify(body);
  if (!isBegun(response)) {
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  }
  // As a text: Node sends it together with the headers by one write.
  response.end(text);
}

/** The codes of OpenAI for errors that its clients handle separately; all other errors have the HTTP status. */
const NAMES: Partial<Record<ErrorCode, string>> = {
  MODEL_NOT_FOUND: 'model_not_found',
  CONTEXT_TOO_LONG: 'context_length_exceeded',
};

/** An error in the form of OpenAI: message, type, param and code; `retryable` is ours. */
export function errorBody(error: BroomwagonError): object {
  const { code, message, retryable, field } = error;
  return { message, type: code, code: NAMES[code] ?? httpStatusOf(code), param: field ?? null, retryable };
}
