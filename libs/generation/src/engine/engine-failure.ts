import { isBroomwagonError, type ErrorCode } from '@broomwagon/contracts';

/**
 * Kind of a failed call of an engine, by the party at fault:
 *
 * - `refused`: the request, which fails for good.
 * - `not-served`: nobody. The engine could not serve now, or has not seen the request.
 * - `wrong`: this start of the server. Its answer is not of its dialect, and each further call would be wasted.
 * - `failed`: the request or the server. Further calls of either show which.
 */
export type FailureKind = 'refused' | 'not-served' | 'wrong' | 'failed';

/** Every counter of failures decides by this table; a new code of engines does not compile without an entry. */
const KINDS: Record<Extract<ErrorCode, `ENGINE_${string}`>, FailureKind> = {
  ENGINE_REJECTED: 'refused',
  ENGINE_BUSY: 'not-served',
  ENGINE_UNREACHABLE: 'not-served',
  ENGINE_ERROR: 'failed',
  ENGINE_STALLED: 'failed',
  ENGINE_PROTOCOL: 'wrong',
};

/** An error that no engine has caused counts as a failure, so that a defect is not repeated for ever. */
export function classifyFailure(error: Error): FailureKind {
  if (!isBroomwagonError(error) || !Object.hasOwn(KINDS, error.code)) return 'failed';
  return KINDS[error.code as keyof typeof KINDS];
}

/** Maximum pause before a call is repeated, milliseconds. The load-balancer too withholds a busy engine. */
const MAX_PAUSE_MS: Record<FailureKind, number> = {
  refused: 0,
  'not-served': 5_000,
  wrong: 60_000,
  failed: 60_000,
};

/**
 * Pause before the next call of a request: none after the first setback, so that another server gets the request at
 * once, then twice as long each time. A random part of up to a half is left out, so that requests that failed together
 * are not repeated together.
 * @param setbacks calls in a row that ended badly, without a further token
 * @param random in [0, 1)
 */
export function pauseAfterSetbacks(
  kind: FailureKind,
  setbacks: number,
  baseMs: number,
  random: number = Math.random(),
): number {
  if (setbacks <= 1) return 0;
  return Math.min(baseMs * 2 ** Math.min(setbacks - 2, 30), MAX_PAUSE_MS[kind]) * (1 - random / 2);
}
