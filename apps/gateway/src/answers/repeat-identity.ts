import type { IncomingHttpHeaders } from 'node:http';
import { invalidField } from '@broomwagon/contracts';
import type { RepeatIdentity, RepeatKind } from '../core/repeat-identity';
import { readHeaderText } from '../http/headers';
import type { RequestId } from './request-id';

const MAX_KEY_CHARACTERS = 255;

/** Parts of a request that identify it. */
export interface RequestIdentity extends RequestId {
  sessionId?: string;
  headers: IncomingHttpHeaders;
  digest: () => string;
}

/**
 * The identity of a request: the id in its body, else `Idempotency-Key`, else its session and body.
 * @returns undefined if only the connection identifies the request
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function toRepeatIdentity(request: RequestIdentity): RepeatIdentity | undefined {
  const { id, isOwnId, sessionId, headers } = request;
  const buildIdentity = (kind: RepeatKind, name: string): RepeatIdentity => {
    const digest = request.digest();
    const key = JSON.stringify([kind, name, ...(kind === 'session' ? [digest] : [])]);
    return { kind, key, digest };
  };
  if (isOwnId) return buildIdentity('id', id);
  const idempotencyKey = readHeaderText(headers, 'idempotency-key');
  if (idempotencyKey !== undefined) {
    if (idempotencyKey.length <= MAX_KEY_CHARACTERS) return buildIdentity('idempotency-key', idempotencyKey);
    throw invalidField('Idempotency-Key', `must have at most ${MAX_KEY_CHARACTERS} characters`);
  }
  return sessionId === undefined ? undefined : buildIdentity('session', sessionId);
}
