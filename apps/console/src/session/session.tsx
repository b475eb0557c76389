import { type AdminClient, AdminApiError, createAdminClient, readData, type Schemas } from '@broomwagon/admin-client';
import { Center, Loader } from '@mantine/core';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import { noteClock } from '../live/server-clock';

type Identity = Schemas['IdentityReply'];

interface SignedOut {
  signIn(token: string): void;
  /** Reason why the last token was not accepted. */
  problem?: AdminApiError;
}
interface SignedIn {
  identity: Identity;
  client: AdminClient;
  signOut(): void;
  /** True if the caller may use operations of this role. */
  may(role: Identity['role']): boolean;
}

const ROLES: readonly Identity['role'][] = ['client', 'trainer', 'viewer', 'operator', 'admin'];
const SignedOutContext = createContext<SignedOut | undefined>(undefined);
const SignedInContext = createContext<SignedIn | undefined>(undefined);

function createClient(token: string): AdminClient {
  const client = createAdminClient({ url: '', token });
  client.use({ onResponse: ({ response }) => noteClock(response) });
  return client;
}

/** Reads the identity of the token. With a valid token shows the children, otherwise `signIn`. */
export function SessionProvider({ signIn, children }: { signIn: ReactNode; children: ReactNode }) {
  const [token, setToken] = useState(readToken);
  const [identity, setIdentity] = useState<Identity>();
  const [problem, setProblem] = useState<AdminApiError>();
  const client = useMemo(() => (token === undefined ? undefined : createClient(token)), [token]);

  const change = useCallback((next: string | undefined) => {
    storeToken(next);
    setIdentity(undefined);
    setProblem(undefined);
    setToken(next);
  }, []);
  useEffect(() => {
    // The user may open a link with another token in this tab.
    const listen = () => {
      const found = readToken();
      if (found !== token) change(found);
    };
    addEventListener('hashchange', listen);
    return () => removeEventListener('hashchange', listen);
  }, [token, change]);
  useEffect(() => {
    let isCurrent = true;
    (client && readData(client.GET('/api/v1/identity')))?.then(
      (found) => isCurrent && setIdentity(found),
      (error: unknown) => {
        if (!isCurrent) return;
        const failure = AdminApiError.ofFailure(error);
        // If the server does not answer, the token is kept, so that a reload of the page tries it again.
        if (!failure.retryable) storeToken(undefined);
        setProblem(failure);
        setToken(undefined);
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [client]);

  const signedIn = useMemo<SignedIn | undefined>(() => {
    if (client === undefined || identity === undefined) return undefined;
    return {
      identity,
      client,
      signOut: () => change(undefined),
      may: (role) => ROLES.indexOf(identity.role) >= ROLES.indexOf(role),
    };
  }, [client, identity, change]);

  if (signedIn) return <SignedInContext value={signedIn}>{children}</SignedInContext>;
  if (token !== undefined) {
    return (
      <Center h="100vh">
        <Loader aria-label="Signing in" />
      </Center>
    );
  }
  return <SignedOutContext value={{ signIn: change, problem }}>{signIn}</SignedOutContext>;
}

export function useSession(): SignedIn {
  return useContext(SignedInContext)!;
}
export function useSignIn(): SignedOut {
  return useContext(SignedOutContext)!;
}

const STORED = 'broomwagon.token';

/**
 * The token of this tab, from the address (`#token=...` or `#/round?token=...`) or from an earlier visit. A token in
 * the address is removed from there at once, and kept until the tab is closed.
 */
function readToken(): string | undefined {
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

function storeToken(token: string | undefined): void {
  if (token === undefined) sessionStorage.removeItem(STORED);
  else sessionStorage.setItem(STORED, token);
}
