import type { IncomingHttpHeaders } from 'node:http';
import { invalidField } from '@broomwagon/contracts';
import { textOf } from '../http/placement';
import type { RequestId } from '../http/request-id';

const MAX_KEY_CHARACTERS = 255;

/** By what a repeat of a request is recognized: only one of these may join a generation that runs. */
export type RepeatKind = 'id' | 'idempotency-key' | 'session';

/** What a request and its repeats have in common. */
export interface RepeatIdentity {
  kind: RepeatKind;
  /** Unique among the requests of one key. */
  key: string;
  /** SHA-256 of route and body. */
  digest: string;
}

/** What identifies a request. */
export interface RequestIdentity extends RequestId {
  sessionId?: string;
  headers: IncomingHttpHeaders;
  digest: () => string;
}

/**
 * The identity of a request: the id of its body, else `Idempotency-Key`, else its session and body. Undefined: nothing
 * but its connection.
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function repeatIdentityOf(request: RequestIdentity): RepeatIdentity | undefined {
  const { id, isOwnId, sessionId, headers } = request;
  const identityOf = (kind: RepeatKind, name: string): RepeatIdentity => {
    const digest = request.digest();
    const key = JSON.stringify([kind, name, ...(kind === 'session' ? [digest] : [])]);
    return { kind, key, digest };
  };
  if (isOwnId) return identityOf('id', id);
  const idempotencyKey = textOf(headers, 'idempotency-key');
  if (idempotencyKey !== undefined) {
    if (idempotencyKey.length <= MAX_KEY_CHARACTERS) return identityOf('idempotency-key', idempotencyKey);
    throw invalidField('Idempotency-Key', `must have at most ${MAX_KEY_CHARACTERS} characters`);
  }
  return sessionId === undefined ? undefined : identityOf('session', sessionId);
}
