import type { IncomingHttpHeaders } from 'node:http';
import { idFault, idPart, invalidField, type Integer, LIMITS, MAX_COMPOSED_ID_BYTES } from '@broomwagon/contracts';
import type { LeaseRequest } from '@broomwagon/generation';
import { checkedJob } from '../core/recording/trajectory-recorder';
import type { Caller } from '../keys/api-keys';
import { isCount } from '../fields/read-fields';
import { isSent, readHeaderText } from '../http/headers';

/** Maximum bytes of a session id, so that the id of a key and the session id together are a valid id. */
const MAX_SESSION_BYTES = MAX_COMPOSED_ID_BYTES - 40;
const INTERVAL_HEADER = 'x-broomwagon-stream-interval';
const PARENT_HEADER = 'x-broomwagon-parent-session';
const SESSION_HEADERS = ['x-session-id', 'x-smg-routing-key'];

/**
 * Session, its parent, group, priority and weight gates of a request, from its headers and body.
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function parsePlacement(
  headers: IncomingHttpHeaders,
  caller: Caller,
  bodySession: unknown,
): Omit<LeaseRequest, 'requestId'> {
  const job = readHeaderText(headers, 'x-broomwagon-job');
  const group = readHeaderText(headers, 'x-broomwagon-group');
  return {
    sessionId: parseSession(headers, caller, bodySession),
    parentSessionId: readOneSession([
      [PARENT_HEADER, readHeaderText(headers, PARENT_HEADER)],
      ['parent_session_id', caller.parentSessionId ?? undefined],
    ]),
    job: job === undefined || job === '' ? undefined : checkedJob(job, 'x-broomwagon-job'),
    // Groups of two jobs may have one name, and share a pool.
    groupId: group === undefined ? undefined : `${idPart(job ?? '')}/${idPart(group)}`,
    priority: readHeaderInteger(headers, 'x-broomwagon-priority'),
    weightVersion: readHeaderInteger(headers, 'x-broomwagon-weight-version'),
    minWeightVersion: readHeaderInteger(headers, 'x-broomwagon-min-weight-version'),
    maxWeightLag: readHeaderInteger(headers, 'x-broomwagon-max-weight-lag'),
  };
}

/** Whether a request names a session; the name may be invalid. */
export function namesSession(headers: IncomingHttpHeaders, caller: Caller, bodySession: unknown): boolean {
  const isNamed = (value: unknown): boolean => value !== undefined && value !== null;
  return isNamed(caller.sessionId) || isNamed(bodySession) || SESSION_HEADERS.some((name) => isNamed(headers[name]));
}

/**
 * Reads the session of a request from its path or key (`caller`), its headers, or the field `session_id`. All given
 * sessions must be equal: otherwise the turn could be recorded in the wrong session.
 */
export function parseSession(headers: IncomingHttpHeaders, caller: Caller, bodySession: unknown): string | undefined {
  return readOneSession([
    ['session', caller.sessionId],
    ...SESSION_HEADERS.map((name): [string, unknown] => [name, readHeaderText(headers, name)]),
    ['session_id', bodySession],
  ]);
}

/** Session that all of the given fields name. @throws BroomwagonError VALIDATION_FAILED */
function readOneSession(given: [field: string, value: unknown][]): string | undefined {
  let session: string | undefined;
  for (const [field, value] of given) {
    if (value === undefined || value === '') continue;
    session ??= checkedSession(value, field);
    if (value !== session) throw invalidField(field, 'names another session than the rest of the request');
  }
  return session;
}

/** @throws BroomwagonError VALIDATION_FAILED */
export function checkedSession(value: unknown, field: string): string {
  if (typeof value !== 'string') throw invalidField(field, 'must be a text');
  const fault = idFault(value, MAX_SESSION_BYTES, 'composed');
  if (fault !== undefined) throw invalidField(field, fault);
  return value;
}

/** Whether the response may be continued after a cut. @throws BroomwagonError VALIDATION_FAILED */
export function wantsResume(headers: IncomingHttpHeaders): boolean {
  return !isSent(headers, 'x-broomwagon-resume', 'off');
}

/** Whether the response is continued after an abort by the engine. @throws BroomwagonError VALIDATION_FAILED */
export function continuesEngineAborts(headers: IncomingHttpHeaders): boolean {
  return isSent(headers, 'x-broomwagon-on-engine-abort', 'resume');
}

/** Tokens of one event that the client asks for by a header, if it cannot set a field of the body. */
export function readStreamInterval(headers: IncomingHttpHeaders): Integer | undefined {
  const interval = readHeaderInteger(headers, INTERVAL_HEADER);
  if (interval === undefined || isCount(interval, 1, LIMITS.maxTokens)) return interval;
  throw invalidField(INTERVAL_HEADER, `must be a whole number from 1 to ${LIMITS.maxTokens}`);
}

function readHeaderInteger(headers: IncomingHttpHeaders, name: string): Integer | undefined {
  const text = readHeaderText(headers, name);
  if (text === undefined) return undefined;
  if (!/^\d{1,14}$/.test(text)) throw invalidField(name, 'must be a whole number');
  return Number(text);
}
