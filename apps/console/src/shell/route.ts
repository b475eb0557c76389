import { useMemo, useSyncExternalStore } from 'react';

/** The address `#/<page>?<parameters>`. Pool and job are parameters, so that a link shows the same pool and job. */
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
  return useMemo(() => parseRoute(hash), [hash]);
}

function parseRoute(hash: string): Route {
  const [page = '', query] = hash.replace(/^#\/?/, '').split('?', 2);
  return { page, parameters: new URLSearchParams(query) };
}

/** Address of a page with the present pool and job, after changes. A change to undefined removes a parameter. */
export function buildHref(page: string, changes: Record<string, string | undefined> = {}): string {
  const { parameters } = parseRoute(location.hash);
  const kept = new URLSearchParams([...parameters].filter(([name]) => name === 'pool' || name === 'job'));
  return buildHash(page, kept, changes);
}

export function setParameters(changes: Record<string, string | undefined>): void {
  const { page, parameters } = parseRoute(location.hash);
  location.hash = buildHash(page, parameters, changes);
}

function buildHash(page: string, parameters: URLSearchParams, changes: Record<string, string | undefined>): string {
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) parameters.delete(name);
    else parameters.set(name, value);
  }
  return `#/${page}${parameters.size > 0 ? `?${parameters}` : ''}`;
}
