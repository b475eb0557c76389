import type { IncomingMessage } from 'node:http';
import { BroomwagonError, LIMITS } from '@broomwagon/contracts';
import { decodeBody, type JsonObject } from '@broomwagon/messaging';

const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** Whether a request announces a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Reads a JSON object; a missing body is an empty object.
 * @throws BroomwagonError PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, MALFORMED_JSON
 */
export async function readBody(request: IncomingMessage): Promise<JsonObject> {
  const { headers } = request;
  if (!hasBody(request)) return {};
  if (!JSON_TYPE.test(headers['content-type'] ?? '') || (headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new BroomwagonError('UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json without an encoding');
  }
  if (Number(headers['content-length'] ?? 0) > LIMITS.bodyBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LIMITS.bodyBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return decodeBody(Buffer.concat(chunks));
}

function tooLarge(): BroomwagonError {
  return new BroomwagonError('PAYLOAD_TOO_LARGE', `The body is larger than ${LIMITS.bodyBytes} bytes`);
}
