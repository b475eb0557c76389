import { type AdminClient, AdminApiError, eventsOf, type StreamedEvent } from '@broomwagon/admin-client';
import { createContext, type ReactNode, useContext, useEffect, useState, useSyncExternalStore } from 'react';
import { type PoolEventType, SELDOM_EVENTS } from './event-types';

/** Older events are forgotten. */
const MOST_EVENTS = 1_000;
/** Events are shown together, so that thousands in a second cost as much as a few, milliseconds. */
const BATCH_MS = 500;
const RETRY_MS = 5_000;
const NONE: readonly StreamedEvent[] = [];

/** The last events of a pool: one connection for all components. */
class EventStore {
  /** Latest first; another array after each change. */
  events = NONE;
  /** Why there are no new events at present. */
  error?: AdminApiError;
  private types: readonly PoolEventType[] = SELDOM_EVENTS;
  private pending: StreamedEvent[] = [];
  private readonly listeners = new Set<(added: readonly StreamedEvent[]) => void>();
  private timer?: ReturnType<typeof setTimeout>;
  private control = new AbortController();
  private lastId?: string;

  constructor(
    private readonly client: AdminClient,
    private readonly pool: string,
  ) {}

  /** Other types from now on. */
  read(types: readonly PoolEventType[]): void {
    this.types = types;
    this.stop();
    this.start();
  }

  start(): void {
    this.control = new AbortController();
    void this.follow(this.control.signal);
  }

  stop(): void {
    this.control.abort();
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  readonly listen = (listener: (added: readonly StreamedEvent[]) => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const options = { query: { type: [...this.types] }, lastId: this.lastId, signal };
        for await (const streamed of eventsOf(this.client, this.pool, options)) this.take(streamed);
      } catch (cause) {
        this.error = AdminApiError.ofFailure(cause);
        this.publish();
      }
      await new Promise((settle) => setTimeout(settle, RETRY_MS));
    }
  }

  private take(streamed: StreamedEvent): void {
    this.lastId = streamed.id;
    this.pending.push(streamed);
    if (this.pending.length > MOST_EVENTS) this.pending.shift();
    this.timer ??= setTimeout(() => this.publish(), BATCH_MS);
  }

  private publish(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const added = this.pending.toReversed();
    this.pending = [];
    if (added.length > 0) this.error = undefined;
    this.events = [...added, ...this.events].slice(0, MOST_EVENTS);
    for (const listener of this.listeners) listener(added);
  }
}

const EventsContext = createContext<EventStore | undefined>(undefined);

/** Gives all components below the events of a pool. */
export function EventsProvider({ client, pool, children }: { client: AdminClient; pool: string; children: ReactNode }) {
  const [store, setStore] = useState<EventStore>();
  useEffect(() => {
    const next = new EventStore(client, pool);
    next.start();
    setStore(next);
    return () => next.stop();
  }, [client, pool]);
  return <EventsContext value={store}>{children}</EventsContext>;
}

/** Calls `onEvents` after new events of these types. */
export function useEvents(types: readonly PoolEventType[], onEvents: () => void): void {
  const store = useContext(EventsContext);
  const key = types.join();
  useEffect(() => {
    if (store === undefined || key === '') return undefined;
    const wanted = new Set<string>(key.split(','));
    return store.listen((added) => {
      if (added.some(({ event }) => wanted.has(event.type))) onEvents();
    });
  }, [store, key, onEvents]);
}

/** The last events of these types and of those that are read all the time, latest first. */
export function useEventList(types: readonly PoolEventType[]) {
  const store = useContext(EventsContext);
  const key = types.filter((type) => !SELDOM_EVENTS.includes(type)).join();
  useEffect(() => {
    if (store === undefined || key === '') return undefined;
    store.read([...SELDOM_EVENTS, ...(key.split(',') as PoolEventType[])]);
    return () => store.read(SELDOM_EVENTS);
  }, [store, key]);
  const events = useSyncExternalStore(store?.listen ?? nothing, () => store?.events ?? NONE);
  return { events, error: store?.error };
}

function nothing() {
  return () => undefined;
}
