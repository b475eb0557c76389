import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError, type ReleaseOutcome } from '@broomwagon/contracts';
import type { EngineAdapter, GenerateOptions, GenerationRequest, GenerationResult } from '@broomwagon/engines';
import type { LeasedCall } from '../leases/leased-call';
import { stopOnEngine } from './stop-on-engine';
import type { MadeSegment, TokenCollector } from '../tokens/token-collector';

/** Maximum time in which aborts of a failed call are repeated. */
export const FAILED_STOP_DEADLINE_MS = 30_000;

/** How a call ended: with a finished sample, or, with the tokens so far, by a stop or a failure. */
export type Generated = { made: MadeSegment; result?: GenerationResult } & (
  | { finishReason: 'stop' | 'length' }
  | { stopped: true }
  /** The engine ended the request without a call of ours, e.g. when its trainer aborts all requests: no failure. */
  | { stoppedByEngine: true }
  | { error: Error }
);

/** Callbacks of a call while it runs, and how long its end may take. */
export interface EngineRunOptions {
  /** Tokens have arrived; `tokens` has them. Must not throw. */
  onTokens?: GenerateOptions['onTokens'];
  readsAtOnce?: GenerateOptions['readsAtOnce'];
  opaqueField?: GenerateOptions['opaqueField'];
  /** The stream has ended; the engine may still run the request. Must not throw. */
  onStreamEnd?: () => void | Promise<void>;
  /** How long an abort that the engine does not confirm is repeated, milliseconds. */
  stopDeadlineMs: number;
}

/** Runs one call to its end: afterwards its lease may be released. Never throws. */
export async function runOnEngine(
  engine: Pick<EngineAdapter, 'generate' | 'abort'>,
  call: LeasedCall,
  request: GenerationRequest,
  tokens: TokenCollector,
  { onTokens, readsAtOnce, opaqueField, onStreamEnd, stopDeadlineMs }: EngineRunOptions,
): Promise<Generated> {
  let result: GenerationResult | undefined;
  let error: Error | undefined;
  let isUnstopped = false;
  try {
    result = await engine.generate(request, {
      signal: call.stopSignal,
      // The collector or its caller keeps them.
      keepsTokens: false,
      readsAtOnce,
      opaqueField,
      onTokens: (increment) => {
        if (tokens.take(increment)) call.stop('cut');
        onTokens?.(increment);
      },
      onPlan: ({ resumedBy }) => (tokens.resumedBy = resumedBy),
      onUnstopped: () => (isUnstopped = true),
    });
  } catch (thrown) {
    error = thrown as Error;
  }
  await onStreamEnd?.();
  // Keep the lease while the engine may still run the request. A call that has failed is repeated for less time.
  const deadlineMs = error === undefined ? stopDeadlineMs : Math.min(stopDeadlineMs, FAILED_STOP_DEADLINE_MS);
  if (isUnstopped) await stopOnEngine(engine, request.engineRequestId, call, deadlineMs);
  if (tokens.matched !== undefined) return { made: tokens.finished(result), result, finishReason: 'stop' };
  // A finished sample is complete, also if a stop came at the same moment.
  if (result !== undefined && result.finishReason !== 'aborted') {
    return { made: tokens.finished(result), result, finishReason: result.finishReason };
  }
  tokens.cut();
  const made = tokens.made();
  if (call.isStopped) return { made, result, stopped: true };
  return error === undefined ? { made, result, stoppedByEngine: true } : { made, error };
}

/** Outcome of the release of the lease. A refusal is caused by the request, not by the server. */
export function releaseOutcomeOf(generated: Generated): ReleaseOutcome {
  if ('finishReason' in generated) return 'finished';
  if ('stopped' in generated || 'stoppedByEngine' in generated) return 'aborted';
  return isBroomwagonError(generated.error, 'ENGINE_REJECTED') ? 'rejected' : 'failed';
}

/**
 * An engine that refuses at once looks like the least loaded one: if its leases were released at once, every request
 * would be sent to it until the load-balancer marks the server. A stop ends the pause.
 */
export async function pauseAfterFailure(call: LeasedCall, generated: Generated, pauseMs: number): Promise<void> {
  const endedAtOnce = 'stoppedByEngine' in generated && generated.made.tokenCount === 0;
  const failed = 'error' in generated && !isBroomwagonError(generated.error, 'ENGINE_REJECTED');
  if (!endedAtOnce && !failed) return;
  await delay(pauseMs, undefined, { signal: call.signal }).catch(() => undefined);
}
