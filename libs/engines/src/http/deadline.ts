import type { StopSignal } from '../stop-signal';

/** A signal for one call. */
export interface CallSignal {
  signal: AbortSignal;
  /** True once the time was over and the call had not been ended before. */
  isOver(): boolean;
  /** Removes the timer and the listener; call it at the end. */
  clear(): void;
}

/**
 * A signal that fires after `timeoutMs`, or with `outer`. Of `AbortSignal.any` a signal that lives as long as the
 * process would remember each call for ever.
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
