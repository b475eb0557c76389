import { AdminApiError } from '@broomwagon/admin-client';

/** Why reads fail, and since when. */
export interface Failure {
  error: AdminApiError;
  /** Time of the first failed read since the last success, milliseconds since 1970. */
  sinceMs: number;
}

/**
 * State of a value that is read again and again. `loading`: no read has ended. `failed`: there is no value. `read`: the
 * value is current, or old if `failure` is present.
 */
export type LiveState<Value> =
  | { state: 'loading'; value?: undefined; failure?: undefined; sinceMs: number }
  | { state: 'failed'; value?: undefined; failure: Failure }
  | { state: 'read'; value: Value; failure?: Failure; readAtMs: number };

/** True for an error about an id that the services do not know (any more). */
export function isGone({ code }: AdminApiError): boolean {
  return code.endsWith('_NOT_FOUND') && code !== 'ROUTE_NOT_FOUND';
}

/** State after a failed read. A value whose id is gone is forgotten; any other value stays, as an old one. */
export function toFailed<Value>(before: LiveState<Value>, error: AdminApiError, atMs: number): LiveState<Value> {
  const failure = { error, sinceMs: before.failure?.sinceMs ?? atMs };
  return before.state === 'read' && !isGone(error) ? { ...before, failure } : { state: 'failed', failure };
}
