import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BroomwagonError } from '@broomwagon/contracts';
import { parseBody } from './parse-body';
import { takeSession } from './session-fields';

/**
 * The body as a JSON object, with its session in `session_id`, and without `parent_session_id`, which is `parent`.
 * @param route part of the digest: an equal body to another route is another request
 * @throws BroomwagonError PAYLOAD_TOO_LARGE, MALFORMED_JSON, VALIDATION_FAILED
 */
export async function readObject(request: IncomingMessage, maxBytes: number, route: string) {
  const bytes = await readBytes(request, maxBytes);
  const object = takeSession(parse(bytes));
  const { parent_session_id: parent } = object;
  if (parent !== undefined) delete object.parent_session_id;
  return {
    object,
    parent,
    bytes,
    digest: () => createHash('sha256').update(`${route}\n`).update(bytes).digest('hex'),
  };
}

function readBytes(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const tooLarge = () => new BroomwagonError('PAYLOAD_TOO_LARGE', `The body has more than ${maxBytes} bytes`);
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) return reject(tooLarge());
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else {
        request.pause();
        reject(tooLarge());
      }
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('close', () => {
      if (!request.complete) reject(new BroomwagonError('MALFORMED_JSON', 'The body ended early'));
    });
    request.on('error', reject);
  });
}

function parse(bytes: Buffer): Record<string, unknown> {
  if (bytes.length === 0) return {};
  let value: unknown;
  try {
    value = parseBody(bytes);
  } catch {
    throw new BroomwagonError('MALFORMED_JSON', 'The body is not JSON');
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new BroomwagonError('MALFORMED_JSON', 'The body is not a JSON object');
}
