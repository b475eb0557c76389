import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError } from '@broomwagon/contracts';
import type { EngineAdapter } from '@broomwagon/engines';
import { retryDelayMs } from '@broomwagon/messaging';
import type { LeasedCall } from '../leases/leased-call';

/**
 * Repeats an abort until the engine answers: a closed connection is no confirmation. Ends without an answer when
 * nothing listens at the endpoint, the call or its lease is expired, or the deadline passes. Never throws.
 */
export async function stopOnEngine(
  engine: Pick<EngineAdapter, 'abort'>,
  engineRequestId: string,
  call: LeasedCall,
  deadlineMs: number,
): Promise<void> {
  const endsAtMs = Date.now() + deadlineMs;
  const isHeld = () => !call.isExpired && call.cause !== 'lease-lost';
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

/** Whether nothing listens at the endpoint. An engine that does not answer may still generate. */
function isRefused(error: unknown): boolean {
  if (!isBroomwagonError(error, 'ENGINE_UNREACHABLE')) return false;
  return (error.details as { code?: string } | undefined)?.code === 'ECONNREFUSED';
}
