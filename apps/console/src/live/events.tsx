import type { AdminClient } from '@broomwagon/admin-client';
import { createContext, type ReactNode, useContext, useEffect, useState, useSyncExternalStore } from 'react';
import { EventStore, NONE } from './event-store';
import { type PoolEventType, SELDOM_EVENTS } from './event-types';

const EventsContext = createContext<EventStore | undefined>(undefined);

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

/** The last events of these types and of SELDOM_EVENTS, the latest first. */
export function useEventList(types: readonly PoolEventType[]) {
  const store = useContext(EventsContext);
  const key = types.filter((type) => !SELDOM_EVENTS.includes(type)).join();
  useEffect(() => {
    if (store === undefined || key === '') return undefined;
    store.read([...SELDOM_EVENTS, ...(key.split(',') as PoolEventType[])]);
    return () => store.read(SELDOM_EVENTS);
  }, [store, key]);
  const events = useSyncExternalStore(store?.listen ?? nothing, () => store?.events ?? NONE);
  return { events, link: store?.link };
}

function nothing() {
  return () => undefined;
}
