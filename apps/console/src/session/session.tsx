import { type AdminClient, AdminApiError, createAdminClient, readData, type Schemas } from '@broomwagon/admin-client';
import { Button, Center, Loader, Stack } from '@mantine/core';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import { FailedRead } from '../components/live-data';
import type { Failure } from '../live/live-state';
import { readAgain } from '../live/read-again';
import { noteClock, nowMs } from '../live/server-clock';

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

/** Maximum duration of a call, milliseconds. admin-api answers each call within 10 s, with an error if it must. */
const TIMEOUT_MS = 15_000;
/** Interval at which the identity is read while admin-api does not answer, milliseconds. */
const RETRY_MS = 5_000;

/** Creates a client. `onRefused` is called when the token is not valid, also when it expires later. */
function createClient(token: string, onRefused: (error: AdminApiError) => void): AdminClient {
  const client = createAdminClient({ url: '', token, timeoutMs: TIMEOUT_MS });
  client.use({
    onResponse: async ({ response }) => {
      noteClock(response);
      if (response.status !== 401) return;
      const body: unknown = await response.clone().json();
      onRefused(AdminApiError.ofReply(response, body));
    },
  });
  return client;
}

/**
 * Reads the identity of the token. With a valid token shows the children, otherwise `signIn`. When a read answers that
 * the token has expired, shows `signIn` again, and the address keeps the page.
 */
export function SessionProvider({ signIn, children }: { signIn: ReactNode; children: ReactNode }) {
  const [token, setToken] = useState(readToken);
  const [identity, setIdentity] = useState<Identity>();
  const [problem, setProblem] = useState<AdminApiError>();
  const [failure, setFailure] = useState<Failure>();

  const change = useCallback((next: string | undefined, refusal?: AdminApiError) => {
    storeToken(next);
    setIdentity(undefined);
    setFailure(undefined);
    setProblem(refusal);
    setToken(next);
  }, []);
  const client = useMemo(
    () => (token === undefined ? undefined : createClient(token, (error) => change(undefined, error))),
    [token, change],
  );
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
    if (client === undefined) return undefined;
    const control = new AbortController();
    void readAgain({
      read: () => readData(client.GET('/api/v1/identity', { signal: control.signal })),
      everyMs: RETRY_MS,
      signal: control.signal,
      wake: { current: () => undefined },
      onValue: (found) => {
        setIdentity(found);
        control.abort();
      },
      // Without an answer the token is kept, and the read is repeated.
      onError: (error) => {
        if (error.retryable) setFailure((before) => ({ error, sinceMs: before?.sinceMs ?? nowMs() }));
        else change(undefined, error);
      },
    });
    return () => control.abort();
  }, [client, change]);

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
  if (token !== undefined) return <SigningIn failure={failure} signOut={() => change(undefined)} />;
  return <SignedOutContext value={{ signIn: change, problem }}>{signIn}</SignedOutContext>;
}

function SigningIn({ failure, signOut }: { failure?: Failure; signOut(): void }) {
  return (
    <Center mih="100vh" p="md" component="main">
      <Stack align="center">
        <Loader aria-label="Signing in" />
        {failure !== undefined && <FailedRead what="your token" failure={failure} />}
        <Button variant="default" onClick={signOut}>
          Use another token
        </Button>
      </Stack>
    </Center>
  );
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
