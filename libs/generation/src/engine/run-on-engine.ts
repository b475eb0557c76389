import { isBroomwagonError, type ReleaseItem, type ReleaseOutcome } from '@broomwagon/contracts';
import type { EngineAdapter, GenerateOptions, GenerationRequest, GenerationResult } from '@broomwagon/engines';
import type { LeasedCall } from '../leases/leased-call';
import { classifyFailure, type FailureKind } from './engine-failure';
import { stopOnEngine } from './stop-on-engine';
import type { TokenBuffer } from '../tokens/token-buffer';

/** Maximum time in which aborts of a failed call are repeated. */
export const FAILED_STOP_DEADLINE_MS = 30_000;

/**
 * End of a call (finished response, stop, or failure), and the number of tokens that the call has added.
 * `unsentTokens`: tokens that the engine has generated and not sent; the next call generates them again.
 */
export type Generated = { tokenCount: number; unsentTokens?: number; result?: GenerationResult } & (
  | { finishReason: 'stop' | 'length' }
  | { stopped: true }
  /** The engine ended the request by itself, for example when a trainer aborts all requests: no failure. */
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
  onEventSizes?: GenerateOptions['onEventSizes'];
  /** The stream has ended; the engine may still run the request. Must not throw. */
  onStreamEnd?: () => void | Promise<void>;
  /** A response is not continued after a call that the engine ended by itself. */
  endsAborted?: boolean;
  /** How long an abort that the engine does not confirm is repeated, milliseconds. */
  stopDeadlineMs: number;
}

/**
 * Runs one call to its end. Then the lease may be released. Never throws.
 * @param tokens tokens of the response, to which the tokens of the call are added; at a cut, an incomplete character is
 *   dropped
 */
export async function runOnEngine(
  engine: Pick<EngineAdapter, 'generate' | 'abort'>,
  call: LeasedCall,
  request: GenerationRequest,
  tokens: TokenBuffer,
  options: EngineRunOptions,
): Promise<Generated> {
  const { onTokens, readsAtOnce, opaqueField, onUncheckedText, onEventSizes, onStreamEnd, endsAborted } = options;
  const start = tokens.count;
  let result: GenerationResult | undefined;
  let error: Error | undefined;
  let isUnstopped = false;
  let unsentTokens = 0;
  try {
    result = await engine.generate(request, {
      signal: call.stopSignal,
      keepsTokens: false,
      readsAtOnce,
      opaqueField,
      onUncheckedText,
      onEventSizes,
      onTokens: (increment) => {
        if (tokens.take(increment)) call.stop('cut');
        onTokens?.(increment);
      },
      onPlan: ({ resumedBy }) => (tokens.resumedBy = resumedBy),
      onUnstopped: () => (isUnstopped = true),
      onLost: (tokenCount) => (unsentTokens += tokenCount),
    });
  } catch (thrown) {
    error = thrown as Error;
  }
  await onStreamEnd?.();
  // The lease is kept while the engine may still run the request. An abort of a failed call is repeated for less time.
  const deadlineMs =
    error === undefined ? options.stopDeadlineMs : Math.min(options.stopDeadlineMs, FAILED_STOP_DEADLINE_MS);
  if (isUnstopped) await stopOnEngine(engine, request.engineRequestId, call, deadlineMs);
  const finishReason = findFinishReason(tokens, result);
  const isStoppedByEngine = finishReason === undefined && !call.isStopped && error === undefined;
  if (finishReason !== undefined || (isStoppedByEngine && endsAborted)) tokens.complete();
  else tokens.cut();
  const ended = { tokenCount: tokens.count - start, unsentTokens, result };
  if (finishReason !== undefined) {
    // Without token ids, the usage of the engine counts better than the pieces of its stream.
    const isCountedByUsage = !tokens.hasIds && tokens.matched === undefined;
    const tokenCount = (isCountedByUsage ? result?.usage?.completionTokens : undefined) ?? ended.tokenCount;
    return { tokenCount, result, finishReason };
  }
  if (call.isStopped) return { ...ended, stopped: true };
  return error === undefined ? { ...ended, stoppedByEngine: true } : { ...ended, error };
}

/**
 * Finish reason of the response, also if a stop came at the same moment; undefined if the response must be continued.
 */
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
