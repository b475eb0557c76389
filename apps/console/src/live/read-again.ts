import { AdminApiError } from '@broomwagon/admin-client';

export interface Reading<Value> {
  read(): Promise<Value>;
  /** Pause between two reads, milliseconds. After a failure the pause is 1 s, then longer with each failure. */
  everyMs: number;
  /** An abort of this signal ends the reading. */
  signal: AbortSignal;
  /** Receives a function that makes the next read early. If a read runs now, another read follows. */
  wake: { current: () => void };
  onValue(value: Value): void;
  onError(error: AdminApiError): void;
}

/** Minimum time between two reads that `wake` causes, milliseconds. */
const SHORTEST_GAP_MS = 1_000;
/** Longest pause after failures, milliseconds, so that a recovery is seen soon. */
const LONGEST_GAP_MS = 10_000;

export async function readAgain<Value>(reading: Reading<Value>): Promise<void> {
  const { read, everyMs, signal, wake, onValue, onError } = reading;
  let failures = 0;
  for (;;) {
    const startedMs = performance.now();
    let isAsked = false;
    wake.current = () => {
      isAsked = true;
    };
    try {
      const value = await read();
      if (signal.aborted) return;
      onValue(value);
      failures = 0;
    } catch (cause) {
      if (signal.aborted) return;
      onError(AdminApiError.ofFailure(cause));
      failures += 1;
    }
    await new Promise<void>((settle) => {
      const restMs = () => Math.max(0, startedMs + SHORTEST_GAP_MS - performance.now());
      const gapMs = failures === 0 ? everyMs : Math.min(SHORTEST_GAP_MS * 2 ** (failures - 1), LONGEST_GAP_MS);
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        settle();
      };
      let timer = setTimeout(end, isAsked ? restMs() : gapMs);
      wake.current = () => {
        clearTimeout(timer);
        timer = setTimeout(end, restMs());
      };
      signal.addEventListener('abort', end);
    });
    if (signal.aborted) return;
  }
}
