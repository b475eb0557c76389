import type { StopSignal } from '../stop-signal';

export interface CallSignal {
  signal: AbortSignal;
  /** Whether the time was over before the call ended. */
  isOver(): boolean;
  /** Removes the timer and the listener; call it at the end. */
  clear(): void;
}

/**
 * A signal that fires after `timeoutMs`, or with `outer`. `AbortSignal.any` is not used: an `outer` that lives as long
 * as the process would keep each call in memory.
 */
export function callSignal(timeoutMs: number, outer?: StopSignal): CallSignal {
  const controller = new AbortController();
  let over = false;
  const timer = setTimeout(() => {
    over = true;
    controller.abort(new DOMException('The call took too long', 'TimeoutError'));
  }, timeoutMs);
  const onAbort = (): void => controller.abort(outer?.reason);
  outer?.addEventListener('abort', onAbort);
  if (outer?.aborted) onAbort();
  return {
    signal: controller.signal,
    isOver: () => over && !outer?.aborted,
    clear: () => {
      clearTimeout(timer);
      outer?.removeEventListener('abort', onAbort);
    },
  };
}
