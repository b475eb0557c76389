import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError } from '@broomwagon/contracts';

/** How a call is repeated. A repeat is safe, because all commands are idempotent. */
export interface RetryOptions {
  /** Maximum duration of the whole call, with all attempts and pauses, milliseconds. */
  deadlineMs: number;
  /** Maximum time of one attempt, milliseconds. Default: the rest of the deadline, at most 5,000. */
  attemptTimeoutMs?: number;
  /** First pause before jitter, milliseconds. Default 25. */
  baseDelayMs?: number;
  /** Longest pause before jitter, milliseconds. Default 2,000. */
  maxDelayMs?: number;
  /** Returns a random number in [0, 1); default Math.random. */
  random?: () => number;
  /** Number of INTERNAL errors after which the call fails; default: no limit. */
  maxInternal?: number;
  signal?: AbortSignal;
}

/**
 * Returns the pause before attempt `attempt + 1`: `retryAfterMs` of the service, plus a random part of a time that
 * doubles with each attempt. So callers that are refused together do not return together.
 */
export function retryDelayMs(
  attempt: number,
  retryAfterMs: number,
  options: Pick<RetryOptions, 'baseDelayMs' | 'maxDelayMs' | 'random'>,
): number {
  const cap = Math.min(options.maxDelayMs ?? 2_000, (options.baseDelayMs ?? 25) * 2 ** Math.min(attempt, 30));
  return retryAfterMs + (options.random ?? Math.random)() * cap;
}

/**
 * Repeats an attempt until one succeeds. Throws the last error if the error is not retryable, or if the next pause
 * would pass the deadline.
 */
export async function withRetry<T>(attempt: (timeoutMs: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const endsAtMs = performance.now() + options.deadlineMs;
  let internal = 0;
  for (let count = 0; ; count++) {
    const leftMs = Math.max(1, endsAtMs - performance.now());
    try {
      return await attempt(Math.min(leftMs, options.attemptTimeoutMs ?? 5_000));
    } catch (error) {
      if (isBroomwagonError(error, 'INTERNAL')) internal += 1;
      const isRefused = !isBroomwagonError(error) || !error.retryable || internal >= (options.maxInternal ?? Infinity);
      if (isRefused || options.signal?.aborted) throw error;
      const pauseMs = retryDelayMs(count, error.retryAfterMs ?? 0, options);
      if (performance.now() + pauseMs >= endsAtMs) throw error;
      await delay(pauseMs, undefined, { signal: options.signal }).catch(() => {
        throw error;
      });
    }
  }
}
