const STORED = 'broomwagon.token';

/**
 * The token of this tab, from the address (`#token=...` or `#/round?token=...`), from which it is removed at once, or
 * from an earlier visit. It is kept until the tab is closed.
 */
export function readToken(): string | undefined {
  const fragment = location.hash.slice(1);
  const [page, query] = fragment.startsWith('/') ? fragment.split('?', 2) : ['/', fragment];
  const parameters = new URLSearchParams(query);
  const given = parameters.get('token');
  if (given !== null && given !== '') {
    sessionStorage.setItem(STORED, given);
    parameters.delete('token');
    const others = parameters.size > 0 ? `?${parameters}` : '';
    history.replaceState(null, '', `${location.pathname}${location.search}#${page}${others}`);
  }
  return sessionStorage.getItem(STORED) ?? undefined;
}

export function storeToken(token: string | undefined): void {
  if (token === undefined) sessionStorage.removeItem(STORED);
  else sessionStorage.setItem(STORED, token);
}
