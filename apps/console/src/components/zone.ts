import { useSyncExternalStore } from 'react';

/** Zone of the times on the pages. */
export type Zone = 'local' | 'utc';

const STORED = 'broomwagon.zone';
const listeners = new Set<() => void>();
let zone: Zone = globalThis.localStorage?.getItem(STORED) === 'utc' ? 'utc' : 'local';

export function getZone(): Zone {
  return zone;
}

export function setZone(next: Zone): void {
  zone = next;
  localStorage.setItem(STORED, next);
  for (const listener of listeners) listener();
}

/** Returns the zone, and renders again when the user chooses another zone. */
export function useZone(): Zone {
  return useSyncExternalStore(listen, getZone);
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
