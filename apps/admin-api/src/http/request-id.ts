import { randomUUID } from 'node:crypto';
import type { Request } from 'express';

const GIVEN = /^[\w.:-]{1,128}$/;
const ids = new WeakMap<Request, string>();

/** Id of a request: its header `X-Request-Id`, or a random id. */
export function getRequestId(request: Request): string {
  const known = ids.get(request);
  if (known !== undefined) return known;
  const given = request.get('X-Request-Id') ?? '';
  const id = GIVEN.test(given) ? given : randomUUID();
  ids.set(request, id);
  return id;
}
