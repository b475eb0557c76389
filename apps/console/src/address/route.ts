import { useCallback, useMemo, useSyncExternalStore } from 'react';

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

/**
 * A parameter of the address with its default, which the address leaves out. A change replaces the entry in the history
 * of the browser, so that each letter of a filter is no step back.
 */
export function useParameter(name: string, fallback: string): [value: string, set: (next: string) => void] {
  const given = useRoute().parameters.get(name);
  const set = useCallback(
    (next: string) => {
      const { page, parameters } = parseRoute(location.hash);
      const changes = { [name]: next === fallback ? undefined : next };
      history.replaceState(null, '', buildHash(page, parameters, changes));
      dispatchEvent(new HashChangeEvent('hashchange'));
    },
    [name, fallback],
  );
  return [given ?? fallback, set];
}

function buildHash(page: string, parameters: URLSearchParams, changes: Record<string, string | undefined>): string {
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) parameters.delete(name);
    else parameters.set(name, value);
  }
  return `#/${page}${parameters.size > 0 ? `?${parameters}` : ''}`;
}
