import { isBroomwagonError, type ReleaseItem, type ReleaseOutcome } from '@broomwagon/contracts';
import type { EngineAdapter, GenerateOptions, GenerationRequest, GenerationResult } from '@broomwagon/engines';
import type { LeasedCall } from '../leases/leased-call';
import { classifyFailure, type FailureKind } from './engine-failure';
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

const OUTCOMES: Record<FailureKind, ReleaseOutcome> = { refused: 'rejected', 'not-served': 'busy', failed: 'failed' };

/** Outcome of the release of the lease, with the time for which the engine has asked not to be called. */
export function toReleaseOutcome(generated: Generated): Pick<ReleaseItem, 'outcome' | 'retryAfterMs'> {
  if ('finishReason' in generated) return { outcome: 'finished' };
  if (!('error' in generated)) return { outcome: 'aborted' };
  const { error } = generated;
  const outcome = OUTCOMES[classifyFailure(error)];
  if (outcome !== 'busy' || !isBroomwagonError(error)) return { outcome };
  return { outcome, retryAfterMs: error.retryAfterMs };
}
