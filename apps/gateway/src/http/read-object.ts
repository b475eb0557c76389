import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BroomwagonError } from '@broomwagon/contracts';
import { parseBody } from './parse-body';

/**
 * The body as a JSON object; the field with which clients of ThunderAgent send their session is renamed.
 * @param route part of the digest: an equal body to another route is another request
 * @throws BroomwagonError PAYLOAD_TOO_LARGE, MALFORMED_JSON
 */
export async function readObject(request: IncomingMessage, maxBytes: number, route: string) {
  const bytes = await readBytes(request, maxBytes);
  return {
    object: takeProgram(parse(bytes)),
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

function takeProgram(body: Record<string, unknown>): Record<string, unknown> {
  if (body.program_id === undefined) return body;
  const { program_id: program } = body;
  delete body.program_id;
  body.session_id ??= program;
  return body;
}
