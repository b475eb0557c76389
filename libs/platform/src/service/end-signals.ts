/**
 * SIGTERM and SIGINT from the first moment of a process. The `main` of each service imports this file first: process 1
 * of a container that has no handler ignores both signals, and would begin to work in a pod that is being deleted.
 */
let onEnd: (() => void) | undefined = () => process.exit(0);
let isRequested = false;

function request(): void {
  isRequested = true;
  onEnd?.();
}
process.on('SIGTERM', request);
process.on('SIGINT', request);

/** Keeps a signal until {@link endWith}: the service has begun to start, and has to end what it started. */
export function deferEnd(): void {
  onEnd = undefined;
}

/** Calls the handler at each signal, and at once if a signal was kept. */
export function endWith(handler: () => void): void {
  onEnd = handler;
  if (isRequested) handler();
}
