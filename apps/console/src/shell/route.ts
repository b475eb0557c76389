import { useMemo, useSyncExternalStore } from 'react';

/** The address is `#/<page>?<parameters>`; pool and job are parameters, so that a link shows the same. */
export interface Route {
  page: string;
  parameters: URLSearchParams;
}

function subscribe(onChange: () => void): () => void {
  addEventListener('hashchange', onChange);
  return () => removeEventListener('hashchange', onChange);
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return useMemo(() => routeOf(hash), [hash]);
}

function routeOf(hash: string): Route {
  const [page = '', query] = hash.replace(/^#\/?/, '').split('?', 2);
  return { page, parameters: new URLSearchParams(query) };
}

/** Address of a page with the present pool and job and the given changes; undefined removes a parameter. */
export function hrefOf(page: string, changes: Record<string, string | undefined> = {}): string {
  const { parameters } = routeOf(location.hash);
  const kept = new URLSearchParams([...parameters].filter(([name]) => name === 'pool' || name === 'job'));
  return addressOf(page, kept, changes);
}

/** Sets parameters of the present page. */
export function setParameters(changes: Record<string, string | undefined>): void {
  const { page, parameters } = routeOf(location.hash);
  location.hash = addressOf(page, parameters, changes);
}

function addressOf(page: string, parameters: URLSearchParams, changes: Record<string, string | undefined>): string {
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) parameters.delete(name);
    else parameters.set(name, value);
  }
  return `#/${page}${parameters.size > 0 ? `?${parameters}` : ''}`;
}
