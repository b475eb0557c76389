const STORED = 'broomwagon.token';

/**
 * The token of this tab: that of the address (`#token=...`), which is removed from the address at once, or that of an
 * earlier visit. It is kept until the tab is closed.
 */
export function readToken(): string | undefined {
  const fragment = new URLSearchParams(location.hash.replace(/^#\/?\??/, ''));
  const given = fragment.get('token');
  if (given !== null && given !== '') {
    sessionStorage.setItem(STORED, given);
    fragment.delete('token');
    const rest = fragment.size > 0 ? `?${fragment}` : '';
    history.replaceState(null, '', `${location.pathname}${location.search}#/fleet${rest}`);
  }
  return sessionStorage.getItem(STORED) ?? undefined;
}

export function storeToken(token: string | undefined): void {
  if (token === undefined) sessionStorage.removeItem(STORED);
  else sessionStorage.setItem(STORED, token);
}
