import { createHash, randomUUID } from 'node:crypto';
import { API_ROOT, BroomwagonError, fieldsOfPath, POOL_PATTERN, type Route } from '@broomwagon/contracts';
import type { JsonObject } from '@broomwagon/messaging';
import type { Request } from 'express';
import { OPENAPI, type ParameterSchema } from './openapi-file';
import { readBody } from './read-body';

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,128}$/;

/** The fields of the operation, from path, query or body, and the header `Idempotency-Key`; the pool is apart. */
export interface RequestFields {
  pool?: string;
  body: JsonObject;
  idempotencyKey?: string;
}

/**
 * @param callerId part of an id that is made of an `Idempotency-Key`, so that two callers with one key have two ids
 * @throws BroomwagonError VALIDATION_FAILED, and those of {@link readBody}
 */
export async function readFields(route: Route, request: Request, callerId: string): Promise<RequestFields> {
  const { method, path, values = {}, fields, idField, isSecret, versionField } = route;
  const { pool, ...inPath } = request.params as Record<string, string>;
  if (pool !== undefined && !POOL_PATTERN.test(pool)) {
    throw new BroomwagonError('VALIDATION_FAILED', `pool: must match ${POOL_PATTERN.source}`, { field: 'pool' });
  }
  const inQuery = method === 'GET' || method === 'DELETE';
  const query = new URL(request.originalUrl, 'http://localhost').searchParams;
  if (!inQuery && query.size > 0) throw unknownField([...query.keys()][0]!);
  const given = inQuery ? typedQuery(route, query) : await readBody(request);
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
  if (idField !== undefined) body[idField] ??= idempotencyKey ? idOf(callerId, idempotencyKey) : randomUUID();
  const ifMatch = method === 'GET' ? undefined : request.get('If-Match');
  if (ifMatch !== undefined && ifMatch !== '*') {
    const [, version] = /^"(\d{1,14})"$/.exec(ifMatch) ?? [];
    if (versionField === undefined || version === undefined) {
      throw new BroomwagonError('VALIDATION_FAILED', 'If-Match must be the ETag of a configuration', {
        field: 'If-Match',
      });
    }
    body[versionField] = Number(version);
  }
  return { pool, body, idempotencyKey };
}

function idOf(...parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/** Query parameters with the types of docs/protocol/openapi.json; the service refuses a value of another type. */
function typedQuery({ method, path }: Route, query: URLSearchParams): JsonObject {
  const { parameters } = OPENAPI.paths[API_ROOT + path]![method.toLowerCase()]!;
  const fields = [...new Set(query.keys())].map((name) => {
    const schema = parameters.find((parameter) => parameter.in === 'query' && parameter.name === name)?.schema ?? {};
    const texts = query.getAll(name);
    if (schema.type === 'array') return [name, texts.map((text) => typedText(schema.items ?? {}, text))] as const;
    if (texts.length > 1) throw new BroomwagonError('VALIDATION_FAILED', `${name} is given twice`, { field: name });
    return [name, typedText(schema, texts[0]!)] as const;
  });
  return Object.fromEntries(fields);
}

function typedText({ type, const: only }: ParameterSchema, text: string): unknown {
  const isBoolean = type === 'boolean' || typeof only === 'boolean';
  if (isBoolean && (text === 'true' || text === 'false')) return text === 'true';
  const isNumber = (type === 'integer' || type === 'number') && text.trim() !== '' && Number.isFinite(Number(text));
  return isNumber ? Number(text) : text;
}

function unknownField(field: string): BroomwagonError {
  return new BroomwagonError('VALIDATION_FAILED', `${field} is not a field of this route`, { field });
}
