import type { IncomingHttpHeaders } from 'node:http';
import { idPart, invalidField, type Integer } from '@broomwagon/contracts';
import type { LeaseRequest } from '@broomwagon/generation';
import type { Caller } from '../keys/api-keys';

/**
 * Session, group, priority and weight gates of a request, by its headers. The session is, in this order: of the path
 * or key (`caller`), a header, the field `session_id` of the body.
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function placementOf(
  headers: IncomingHttpHeaders,
  caller: Caller,
  bodySession: unknown,
): Omit<LeaseRequest, 'requestId'> {
  const session = caller.sessionId ?? textOf(headers, 'x-session-id') ?? textOf(headers, 'x-smg-routing-key');
  const job = textOf(headers, 'x-broomwagon-job');
  const group = textOf(headers, 'x-broomwagon-group');
  return {
    sessionId: session ?? (typeof bodySession === 'string' && bodySession !== '' ? bodySession : undefined),
    // Groups of two jobs may have one name, and share a pool.
    groupId: group === undefined ? undefined : `${idPart(job ?? '')}/${idPart(group)}`,
    priority: integerOf(headers, 'x-broomwagon-priority'),
    weightVersion: integerOf(headers, 'x-broomwagon-weight-version'),
    minWeightVersion: integerOf(headers, 'x-broomwagon-min-weight-version'),
    maxWeightLag: integerOf(headers, 'x-broomwagon-max-weight-lag'),
  };
}

/** The value of a header; undefined if it is absent or empty. */
export function textOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function integerOf(headers: IncomingHttpHeaders, name: string): Integer | undefined {
  const text = textOf(headers, name);
  if (text === undefined) return undefined;
  if (!/^\d{1,14}$/.test(text)) throw invalidField(name, 'must be a whole number');
  return Number(text);
}
