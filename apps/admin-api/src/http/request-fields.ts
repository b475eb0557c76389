import { createHash, randomUUID } from 'node:crypto';
import {
  BroomwagonError,
  decodePathId,
  fieldsOfPath,
  POOL_PATTERN,
  REST_OPERATIONS,
  type Route,
} from '@broomwagon/contracts';
import { fieldsOfQuery, type JsonObject } from '@broomwagon/messaging';
import type { Request } from 'express';
import { hasBody, readBody } from './read-body';

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,128}$/;

/** The pool, the `Idempotency-Key`, and the fields of the operation from path, query or body. */
export interface RequestFields {
  pool?: string;
  body: JsonObject;
  idempotencyKey?: string;
}

/**
 * Reads the fields of a request.
 * @param callerId makes an id from an `Idempotency-Key` unique: two callers with the same key get different ids
 * @throws BroomwagonError VALIDATION_FAILED, and the errors of {@link readBody}
 */
export async function readFields(route: Route, request: Request, callerId: string): Promise<RequestFields> {
  const { method, path, operation, values = {}, fields, idField, isSecret, versionField } = route;
  const { pool, ...inPath } = readPathIds(request);
  if (pool !== undefined && !POOL_PATTERN.test(pool)) {
    throw new BroomwagonError('VALIDATION_FAILED', `pool: must match ${POOL_PATTERN.source}`, { field: 'pool' });
  }
  const inQuery = method === 'GET' || method === 'DELETE';
  const query = new URL(request.originalUrl, 'http://localhost').searchParams;
  if (!inQuery && query.size > 0) throw unknownField([...query.keys()][0]!);
  if (inQuery && hasBody(request)) {
    throw new BroomwagonError('VALIDATION_FAILED', `${method} has no body: its fields are in the query`, {
      field: 'body',
    });
  }
  const given = inQuery ? fieldsOfQuery(REST_OPERATIONS[operation].request, query) : await readBody(request);
  const idempotencyKey = method === 'GET' ? undefined : request.get('Idempotency-Key');
  if (idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(idempotencyKey)) {
    throw new BroomwagonError('VALIDATION_FAILED', 'Idempotency-Key must be 1 to 128 printable characters', {
      field: 'Idempotency-Key',
    });
  }
  if (isSecret && idempotencyKey !== undefined) {
    throw new BroomwagonError('VALIDATION_FAILED', 'This reply is not stored: send no Idempotency-Key', {
      field: 'Idempotency-Key',
    });
  }
  const implied = new Set([...fieldsOfPath(path), ...Object.keys(values)]);
  for (const field of Object.keys(given)) {
    if (implied.has(field) || (fields !== undefined && !fields.includes(field))) throw unknownField(field);
  }
  const body: JsonObject = { ...given, ...inPath, ...values };
  if (idField !== undefined) body[idField] ??= idempotencyKey ? hashParts(callerId, idempotencyKey) : randomUUID();
  const ifMatch = method === 'GET' ? undefined : request.get('If-Match');
  if (ifMatch !== undefined && ifMatch !== '*') {
    const [, version] = /^"(\d{1,14})"$/.exec(ifMatch) ?? [];
    if (versionField === undefined || version === undefined) {
      throw new BroomwagonError('VALIDATION_FAILED', 'If-Match must be the ETag of a configuration', {
        field: 'If-Match',
      });
    }
    if (body[versionField] !== undefined && body[versionField] !== Number(version)) {
      throw new BroomwagonError('VALIDATION_FAILED', `If-Match and ${versionField} are different versions`, {
        field: 'If-Match',
      });
    }
    body[versionField] = Number(version);
  }
  return { pool, body, idempotencyKey };
}

/** Ids of the path, by field. @throws BroomwagonError VALIDATION_FAILED for broken base64url */
export function readPathIds(request: Request): Record<string, string> {
  const segments = Object.entries(request.params as Record<string, string>);
  return Object.fromEntries(segments.map(([field, segment]) => [field, decodePathId(field, segment)]));
}

function hashParts(...parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

function unknownField(field: string): BroomwagonError {
  return new BroomwagonError('VALIDATION_FAILED', `${field} is not a field of this route`, { field });
}
