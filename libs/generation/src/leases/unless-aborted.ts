/** The value of a promise, or undefined as soon as the signal is aborted. A later value or error is ignored. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T | undefined> {
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<undefined>((resolve) => {
    onAbort = () => resolve(undefined);
    signal.addEventListener('abort', onAbort);
  });
  work.catch(() => undefined);
  try {
    return await (signal.aborted ? undefined : Promise.race([work, aborted]));
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
