import type { StopSignal } from '@broomwagon/engines';

/** The value of a promise, or undefined as soon as the signal is aborted. A later value or error is ignored. */
export function unlessAborted<T>(signal: StopSignal, work: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(undefined);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
    const end = (): void => signal.removeEventListener('abort', onAbort);
    work.then(
      (value) => {
        end();
        resolve(value);
      },
      (error: unknown) => {
        end();
        reject(error as Error);
      },
    );
  });
}
