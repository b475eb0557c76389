import type { IncomingMessage } from 'node:http';
import { RefusedError } from './answers';

const MAX_BODY_BYTES = 64 * 1_048_576;

/** Reads the body as a JSON object. Throws RefusedError 400 or 413. */
export async function readObject(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES) throw new RefusedError(413, `body of more than ${MAX_BODY_BYTES} bytes`);
  }
  const text = Buffer.concat(chunks).toString('utf8');
  if (text === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RefusedError(400, 'the body is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RefusedError(400, 'the body is not a JSON object');
  }
  return value as Record<string, unknown>;
}

/** Reads a whole number of a field; undefined if absent or null. Throws RefusedError 400 for anything else. */
export function wholeNumber(body: Record<string, unknown>, name: string, least: number): number | undefined {
  const value = body[name] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least) {
    throw new RefusedError(400, `${name} must be a whole number of at least ${least}`);
  }
  return value;
}
