import { useCallback, useEffect, useRef, useState } from 'react';
import type { AdminApiError } from '@broomwagon/admin-client';
import { useEvents } from './events';
import type { PoolEventType } from './event-types';
import { readAgain } from './read-again';

export interface Live<Value> {
  /** The last value; undefined before the first read. */
  value?: Value;
  /** Reason why the last read failed. The last value stays. */
  error?: AdminApiError;
  refresh(): void;
}

export interface LiveOptions {
  /** Pause between two reads, milliseconds. */
  everyMs?: number;
  /** Types of events after which the value is read early. */
  after?: readonly PoolEventType[];
}

/**
 * Reads a value now, periodically, and after certain events. Reads nothing while the tab is hidden.
 * @param key name of the value: a new key starts with a new value; undefined: nothing is read
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
