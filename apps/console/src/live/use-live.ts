import { useCallback, useEffect, useRef, useState } from 'react';
import type { AdminApiError } from '@broomwagon/admin-client';
import { useEvents } from './events';
import type { PoolEventType } from './event-types';
import { readAgain } from './read-again';

/** A value that is read periodically. */
export interface Live<Value> {
  /** The last value; undefined before the first. */
  value?: Value;
  /** Reason why the last read failed; the value before it stays. */
  error?: AdminApiError;
  /** Reads the value now. */
  refresh(): void;
}

export interface LiveOptions {
  /** Time from one read to the next, milliseconds. */
  everyMs?: number;
  /** Events after which the value is read earlier. */
  after?: readonly PoolEventType[];
}

/**
 * Reads a value now and periodically, earlier after some events, and not while the tab is hidden.
 * @param key name of the value: another key is another value; undefined: no value is read
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
    const readNow = async () => {
      await visible(signal);
      return latest.current(signal);
    };
    const onValue = (value: Value) => setState({ key, value });
    const onError = (error: AdminApiError) =>
      setState((before) => ({ key, value: before.key === key ? before.value : undefined, error }));
    void readAgain({ read: readNow, everyMs, signal, wake, onValue, onError });
    return () => control.abort();
  }, [key, everyMs]);

  const isCurrent = state.key === key;
  return { value: isCurrent ? state.value : undefined, error: isCurrent ? state.error : undefined, refresh };
}

/** Resolves when the tab is visible. */
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
