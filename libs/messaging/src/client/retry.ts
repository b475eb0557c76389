import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError } from '@broomwagon/contracts';

/** How a call is repeated. All commands are idempotent, so repeating is safe. */
export interface RetryOptions {
  /** The whole call, all attempts and pauses included, takes no longer. */
  deadlineMs: number;
  /** Maximum time of one attempt, milliseconds. Default: the rest of the deadline, at most 5,000. */
  attemptTimeoutMs?: number;
  /** First pause before jitter. Default 25. */
  baseDelayMs?: number;
  /** Longest pause before jitter. Default 2,000. */
  maxDelayMs?: number;
  /** Random number in [0, 1); default Math.random. */
  random?: () => number;
  /** Number of answers INTERNAL of which the last one is thrown; default: as many as fit into the deadline. */
  maxInternal?: number;
  signal?: AbortSignal;
}

/**
 * The pause before attempt `attempt + 1`: the pause that the service asked for, plus full jitter over a capped
 * exponential, so that callers refused together do not return together.
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
 * Runs an attempt until it succeeds, fails for good, or the next pause would pass the deadline; then throws the last
 * error. Only errors marked retryable are tried again.
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
