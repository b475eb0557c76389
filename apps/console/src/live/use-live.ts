import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { AdminApiError } from '@broomwagon/admin-client';
import { useEvents } from './events';
import type { PoolEventType } from './event-types';
import { type LiveState, toFailed } from './live-state';
import { readAgain } from './read-again';
import { nowMs } from './server-clock';

export type Live<Value> = LiveState<Value> & {
  /** Age at which a value counts as old, milliseconds: its next read is late. */
  staleAfterMs: number;
  refresh(): void;
};

export interface LiveOptions {
  /** Pause between two reads, milliseconds. */
  everyMs?: number;
  /** Types of events after which the value is read early. */
  after?: readonly PoolEventType[];
}

/** Time by which a read may be late, milliseconds. */
const LATE_MS = 10_000;

/**
 * Reads a value now, periodically, and after certain events. Reads nothing while the tab is hidden.
 * @param key name of the value: a new key starts with a new value; undefined: nothing is read
 */
export function useLive<Value>(
  key: string | undefined,
  read: (signal: AbortSignal) => Promise<Value>,
  { everyMs = 5_000, after = [] }: LiveOptions = {},
): Live<Value> {
  const [{ key: currentKey, live }, setState] = useState<{ key?: string; live: LiveState<Value> }>(() => ({
    key,
    live: toLoading(),
  }));
  const latest = useRef(read);
  const wake = useRef<() => void>(() => undefined);
  useEffect(() => {
    latest.current = read;
  });
  const refresh = useCallback(() => wake.current(), []);
  useEvents(after, refresh);

  useEffect(() => {
    setState((before) => (before.key === key ? before : { key, live: toLoading() }));
    if (key === undefined) return undefined;
    const control = new AbortController();
    const { signal } = control;
    const readNow = async () => {
      await visible(signal);
      return latest.current(signal);
    };
    const onValue = (value: Value) => setState({ key, live: { state: 'read', value, readAtMs: nowMs() } });
    const onError = (error: AdminApiError) =>
      setState((before) => ({
        key,
        live: toFailed(before.key === key ? before.live : toLoading<Value>(), error, nowMs()),
      }));
    void readAgain({ read: readNow, everyMs, signal, wake, onValue, onError });
    return () => control.abort();
  }, [key, everyMs]);

  // A render with a new key comes before its first state.
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- each key starts at its own time
  const loading = useMemo(() => toLoading<Value>(), [key]);
  const shown = currentKey === key ? live : loading;
  return useMemo(() => ({ ...shown, staleAfterMs: everyMs + LATE_MS, refresh }), [shown, everyMs, refresh]);
}

function toLoading<Value>(): LiveState<Value> {
  return { state: 'loading', sinceMs: nowMs() };
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
