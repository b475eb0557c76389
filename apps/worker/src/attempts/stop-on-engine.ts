import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError } from '@broomwagon/contracts';
import type { EngineAdapter } from '@broomwagon/engines';
import { retryDelayMs } from '@broomwagon/messaging';
import type { Attempt } from './attempt';

/**
 * Says an abort again until the engine has answered it: a closed connection is no confirmation. Ends without an answer
 * when nothing listens there any more, the attempt or its lease is expired, or the deadline passes. Never throws.
 */
export async function stopOnEngine(
  engine: Pick<EngineAdapter, 'abort'>,
  engineRequestId: string,
  attempt: Attempt,
  deadlineMs: number,
): Promise<void> {
  const endsAtMs = Date.now() + deadlineMs;
  const isHeld = () => !attempt.isExpired && attempt.cause !== 'lease-lost';
  for (let tries = 0; isHeld() && Date.now() < endsAtMs; tries++) {
    try {
      await engine.abort(engineRequestId);
      return;
    } catch (error) {
      if (isRefused(error)) return;
    }
    await delay(retryDelayMs(tries, 0, {}));
  }
}

/** Nothing listens there any more. An engine that only does not answer may still be generating. */
function isRefused(error: unknown): boolean {
  if (!isBroomwagonError(error, 'ENGINE_UNREACHABLE')) return false;
  return (error.details as { code?: string } | undefined)?.code === 'ECONNREFUSED';
}
