import { LIMITS, type ErrorCode } from '@broomwagon/contracts';

/**
 * Statuses that report that the engine, or a proxy before it, cannot serve now: timeout of the request, too early, too
 * many requests, bad gateway, unavailable, timeout of the gateway, overloaded. None is evidence about the request.
 */
const BUSY_STATUS = new Set([408, 425, 429, 502, 503, 504, 529]);

/** Errors about the engine or its key instead of the request: unauthorized, forbidden, no such model or route. */
const ENGINE_STATUS = new Set([401, 403, 404]);

/** Code for an error status (400 and above, or NaN) of an answer, or of an error in a stream. */
export function toErrorCode(status: number): Extract<ErrorCode, 'ENGINE_BUSY' | 'ENGINE_REJECTED' | 'ENGINE_ERROR'> {
  if (BUSY_STATUS.has(status)) return 'ENGINE_BUSY';
  return status >= 400 && status < 500 && !ENGINE_STATUS.has(status) ? 'ENGINE_REJECTED' : 'ENGINE_ERROR';
}

/**
 * Value of the header `Retry-After`, which is a number of seconds or an HTTP date (RFC 9110, 10.2.3).
 * @returns milliseconds, at most {@link LIMITS.retryAfterMs}; undefined without a value that can be read
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  const text = value?.trim() ?? '';
  const afterMs = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1_000 : text === '' ? NaN : Date.parse(text) - nowMs;
  return Number.isNaN(afterMs) ? undefined : Math.round(Math.min(Math.max(afterMs, 0), LIMITS.retryAfterMs));
}
