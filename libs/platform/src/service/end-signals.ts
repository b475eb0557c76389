let onEnd: (() => void) | undefined = () => process.exit(0);
let isRequested = false;
let isHandled = false;

function request(): void {
  isRequested = true;
  onEnd?.();
}

/**
 * Handles SIGTERM and SIGINT of this process from now on. Until {@link deferEnd}, a signal ends the process at once.
 */
export function handleEndSignals(): void {
  if (isHandled) return;
  isHandled = true;
  process.on('SIGTERM', request);
  process.on('SIGINT', request);
}

/** Keeps signals until {@link endWith}, because a service that starts must end everything that it has started. */
export function deferEnd(): void {
  onEnd = undefined;
}

/** Calls the handler at each signal, and at once if a signal was kept. */
export function endWith(handler: () => void): void {
  onEnd = handler;
  if (isRequested) handler();
}
