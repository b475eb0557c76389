import { isBroomwagonError, type ReleaseItem, type ReleaseOutcome } from '@broomwagon/contracts';
import type { EngineAdapter, GenerateOptions, GenerationRequest, GenerationResult } from '@broomwagon/engines';
import type { LeasedCall } from '../leases/leased-call';
import { classifyFailure, type FailureKind } from './engine-failure';
import { stopOnEngine } from './stop-on-engine';
import type { TokenBuffer } from '../tokens/token-buffer';

/** Maximum time in which aborts of a failed call are repeated. */
export const FAILED_STOP_DEADLINE_MS = 30_000;

/** How a call ended, and how many tokens it has added: with a finished response, by a stop or by a failure. */
export type Generated = { tokenCount: number; result?: GenerationResult } & (
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
  onUncheckedText?: GenerateOptions['onUncheckedText'];
  /** The stream has ended; the engine may still run the request. Must not throw. */
  onStreamEnd?: () => void | Promise<void>;
  /** The response ends with the tokens of a call that the engine ended by itself: it is not continued. */
  endsAborted?: boolean;
  /** How long an abort that the engine does not confirm is repeated, milliseconds. */
  stopDeadlineMs: number;
}

/**
 * Runs one call to its end: afterwards its lease may be released. Never throws.
 * @param tokens tokens of the response: tokens of the call are added, and a character that is not whole is dropped at a
 *   cut
 */
export async function runOnEngine(
  engine: Pick<EngineAdapter, 'generate' | 'abort'>,
  call: LeasedCall,
  request: GenerationRequest,
  tokens: TokenBuffer,
  { onTokens, readsAtOnce, opaqueField, onUncheckedText, onStreamEnd, endsAborted, stopDeadlineMs }: EngineRunOptions,
): Promise<Generated> {
  const start = tokens.count;
  let result: GenerationResult | undefined;
  let error: Error | undefined;
  let isUnstopped = false;
  try {
    result = await engine.generate(request, {
      signal: call.stopSignal,
      keepsTokens: false,
      readsAtOnce,
      opaqueField,
      onUncheckedText,
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
  const finishReason = findFinishReason(tokens, result);
  const isStoppedByEngine = finishReason === undefined && !call.isStopped && error === undefined;
  if (finishReason !== undefined || (isStoppedByEngine && endsAborted)) tokens.complete();
  else tokens.cut();
  const ended = { tokenCount: tokens.count - start, result };
  if (finishReason !== undefined) {
    // An engine without token ids counts better than the pieces of its stream do.
    const isCountedByUsage = !tokens.hasIds && tokens.matched === undefined;
    const tokenCount = (isCountedByUsage ? result?.usage?.completionTokens : undefined) ?? ended.tokenCount;
    return { tokenCount, result, finishReason };
  }
  if (call.isStopped) return { ...ended, stopped: true };
  return error === undefined ? { ...ended, stoppedByEngine: true } : { ...ended, error };
}

/** A finished response is complete, also if a stop came at the same moment. Undefined: it is to be continued. */
function findFinishReason(tokens: TokenBuffer, result?: GenerationResult): 'stop' | 'length' | undefined {
  if (tokens.matched !== undefined) return 'stop';
  return result === undefined || result.finishReason === 'aborted' ? undefined : result.finishReason;
}

const OUTCOMES: Record<FailureKind, ReleaseOutcome> = {
  refused: 'rejected',
  'not-served': 'busy',
  wrong: 'failed',
  failed: 'failed',
};

/** Outcome of the release of the lease, with the time for which the engine has asked not to be called. */
export function toReleaseOutcome(generated: Generated): Pick<ReleaseItem, 'outcome' | 'retryAfterMs'> {
  if ('finishReason' in generated) return { outcome: 'finished' };
  if (!('error' in generated)) return { outcome: 'aborted' };
  const { error } = generated;
  const outcome = OUTCOMES[classifyFailure(error)];
  if (outcome !== 'busy' || !isBroomwagonError(error)) return { outcome };
  return { outcome, retryAfterMs: error.retryAfterMs };
}
