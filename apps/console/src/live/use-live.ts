import { useCallback, useEffect, useRef, useState } from 'react';
import { AdminApiError } from '@broomwagon/admin-client';
import { useEvents } from './event-store';
import type { PoolEventType } from './event-types';

/** A value that is read again and again. */
export interface Live<Value> {
  /** The last value; undefined before the first. */
  value?: Value;
  /** Why the last read failed; the value before it stays. */
  error?: AdminApiError;
  /** Reads it now. */
  refresh(): void;
}

export interface LiveOptions {
  /** Time from one read to the next, milliseconds. */
  everyMs?: number;
  /** Events after which it is read earlier. */
  after?: readonly PoolEventType[];
}

/** Events and actions cause at most one read in this time, milliseconds. */
const SHORTEST_GAP_MS = 1_000;
const LONGEST_GAP_MS = 30_000;

/**
 * Reads a value now and periodically, earlier after some events, and not while the tab is hidden.
 * @param key names what is read: another key is another value; undefined: nothing is read
 */
export function useLive<Value>(
  key: string | undefined,
  read: (signal: AbortSignal) => Promise<Value>,
  { everyMs = 5_000, after = [] }: LiveOptions = {},
): Live<Value> {
  const [state, setState] = useState<{ key?: string; value?: Value; error?: AdminApiError }>({});
  const latest = useRef(read);
  const wake = useRef<() => void>(() => undefined);
  useEffect(() => {
    latest.current = read;
  });
  const refresh = useCallback(() => wake.current(), []);
  useEvents(after, refresh);

  useEffect(() => {
    if (key === undefined) return undefined;
    const control = new AbortController();
    const { signal } = control;
    const follow = async () => {
      for (let failures = 0; !signal.aborted;) {
        const startedMs = performance.now();
        try {
          const value = await latest.current(signal);
          if (signal.aborted) return;
          setState({ key, value });
          failures = 0;
        } catch (cause) {
          if (signal.aborted) return;
          failures += 1;
          const error = AdminApiError.ofFailure(cause);
          setState((before) => ({ key, value: before.key === key ? before.value : undefined, error }));
        }
        const gapMs = Math.min(everyMs * 2 ** failures, Math.max(everyMs, LONGEST_GAP_MS));
        await gap(startedMs, gapMs, signal, wake);
        await visible(signal);
      }
    };
    void follow();
    return () => control.abort();
  }, [key, everyMs]);

  const isCurrent = state.key === key;
  return { value: isCurrent ? state.value : undefined, error: isCurrent ? state.error : undefined, refresh };
}

/** Settles after a time, or when it is woken, but not before the shortest gap. */
function gap(startedMs: number, gapMs: number, signal: AbortSignal, wake: { current: () => void }): Promise<void> {
  return new Promise((settle) => {
    let timer = setTimeout(settle, gapMs);
    wake.current = () => {
      clearTimeout(timer);
      timer = setTimeout(settle, Math.max(0, startedMs + SHORTEST_GAP_MS - performance.now()));
    };
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      settle();
    });
  });
}

/** Settles when the tab is visible. */
function visible(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((settle) => {
    const control = new AbortController();
    const done = () => {
      if (document.hidden && !signal.aborted) return;
      control.abort();
      settle();
    };
    document.addEventListener('visibilitychange', done, { signal: control.signal });
    signal.addEventListener('abort', done, { signal: control.signal });
  });
}
