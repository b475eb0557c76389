import { setTimeout as delay } from 'node:timers/promises';
import { BroomwagonError } from '@broomwagon/contracts';

export interface WaitOptions {
  /** Event that is awaited, for the error message: `redis-server to answer PING`. */
  what: string;
  timeoutMs: number;
  /** Pause between two tries, default 25 ms. */
  intervalMs?: number;
}

/**
 * Polls a condition until it holds.
 *
 * A condition that throws BroomwagonError ends the wait at once (it will never hold); any other error counts as "not
 * yet" and is named in the TIMEOUT error that ends the wait at its deadline.
 */
export async function waitUntil(condition: () => Promise<boolean> | boolean, options: WaitOptions): Promise<void> {
  const deadline = performance.now() + options.timeoutMs;
  let lastError: unknown;
  for (;;) {
    try {
      if (await condition()) return;
    } catch (error) {
      if (error instanceof BroomwagonError) throw error;
      lastError = error;
    }
    if (performance.now() >= deadline) {
      const reason = lastError instanceof Error ? ` (${lastError.message})` : '';
      throw new BroomwagonError('TIMEOUT', `Waited ${options.timeoutMs} ms for ${options.what}${reason}`, {
        cause: lastError,
      });
    }
    await delay(options.intervalMs ?? 25);
  }
}
