let onEnd: (() => void) | undefined = () => process.exit(0);
let isRequested = false;
let isHandled = false;

function request(): void {
  isRequested = true;
  onEnd?.();
}

/** Handles SIGTERM and SIGINT of this process from now on: until a service starts, they end the process. */
export function handleEndSignals(): void {
  if (isHandled) return;
  isHandled = true;
  process.on('SIGTERM', request);
  process.on('SIGINT', request);
}

/** Keeps a signal until {@link endWith}: the service starts now, and has to end everything that it has started. */
export function deferEnd(): void {
  onEnd = undefined;
}

/** Calls the handler at each signal, and at once if a signal was kept. */
export function endWith(handler: () => void): void {
  onEnd = handler;
  if (isRequested) handler();
}
