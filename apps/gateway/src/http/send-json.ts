import type { ServerResponse } from 'node:http';
import { type BroomwagonError, type ErrorCode, getHttpStatus } from '@broomwagon/contracts';
import { withOpaqueTexts } from '@broomwagon/engines';
import { isBegun } from './silence-keeper';

/** Answers with JSON, if the connection is still open. */
export function sendJson(response: ServerResponse, status: number, body: object): void {
  if (response.destroyed || (response.headersSent && !isBegun(response))) return;
  const json = withOpaqueTexts(() => JSON.stringify(body));
  if (!isBegun(response)) {
    const length = typeof json === 'string' ? Buffer.byteLength(json) : sumByteLengths(json);
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': length });
  }
  endWith(response, json);
}

/** Ends a response with a text, or with parts that are not copied. */
export function endWith(response: ServerResponse, text: string | readonly (string | Buffer)[]): void {
  // Node sends a text together with the headers in one write.
  if (typeof text === 'string') return void response.end(text);
  writeParts(response, text);
  response.end();
}

export function writeParts(response: ServerResponse, parts: readonly (string | Buffer)[]): void {
  response.cork();
  for (const part of parts) if (part.length > 0) response.write(part);
  process.nextTick(() => response.uncork());
}

function sumByteLengths(parts: (string | Buffer)[]): number {
  return parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0);
}

/** Codes of OpenAI for errors that its clients handle separately; all other errors have the HTTP status. */
const NAMES: Partial<Record<ErrorCode, string>> = {
  MODEL_NOT_FOUND: 'model_not_found',
  CONTEXT_TOO_LONG: 'context_length_exceeded',
};

/** HTTP status of an error: the status of the engine, if the engine has refused the request itself (4xx). */
export function toHttpStatus({ code, details }: BroomwagonError): number {
  const { status } = (details ?? {}) as { status?: unknown };
  const isOfEngine = code === 'ENGINE_REJECTED' && typeof status === 'number' && status >= 400 && status < 500;
  return isOfEngine ? status : getHttpStatus(code);
}

/** An error in the form of OpenAI: message, type, param and code, with the further field `retryable`. */
export function errorBody(error: BroomwagonError): object {
  const { code, message, retryable, field } = error;
  return { message, type: code, code: NAMES[code] ?? toHttpStatus(error), param: field ?? null, retryable };
}
