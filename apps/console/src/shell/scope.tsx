import { readData, type Schemas } from '@broomwagon/admin-client';
import { createContext, type ReactNode, useContext, useEffect, useMemo } from 'react';
import { EventsProvider } from '../live/events';
import { type Live, useLive } from '../live/use-live';
import { useSession } from '../session/session';
import { useRoute } from '../address/route';

type Pools = Schemas['ListPoolsReply'];

/** Jobs of a pool: all, and with an open round. */
interface Jobs {
  all: readonly string[];
  open: readonly string[];
}

export interface Scope {
  pool: string;
  pools: Live<Pools>;
  /** The job of the address, otherwise a job with an open round, otherwise the first job; absent if none is known. */
  job?: string;
  jobs: Live<Jobs>;
  status: Live<Schemas['LoadBalancerStatus']>;
}

/** The last pool of this browser: it is shown while the pools cannot be read. */
const LAST_POOL = 'broomwagon.pool';
const ScopeContext = createContext<Scope | undefined>(undefined);

export function useScope(): Scope {
  return useContext(ScopeContext)!;
}

export function useJob(): { pool: string; job: string } {
  const { pool, job } = useScope();
  return { pool, job: job! };
}

interface ScopeProviderProps {
  /** Page without a pool: the pools are being read, cannot be read, or there is none. */
  none(pools: Live<Pools>): ReactNode;
  children: ReactNode;
}

/** Finds the pool and the job that the pages show. Without a pool shows `none`. */
export function ScopeProvider({ none, children }: ScopeProviderProps) {
  const { client, identity } = useSession();
  const { parameters } = useRoute();
  const pools = useLive('pools', (signal) => readData(client.GET('/api/v1/pools', { signal })), { everyMs: 10_000 });
  const first = pools.state === 'read' ? pools.value.pools[0] : undefined;
  const other = pools.state === 'failed' ? (identity.pools?.[0] ?? localStorage.getItem(LAST_POOL)) : undefined;
  const pool = parameters.get('pool') ?? first ?? other ?? undefined;
  useEffect(() => {
    if (pools.state === 'read' && pool !== undefined) localStorage.setItem(LAST_POOL, pool);
  }, [pools.state, pool]);
  if (pool === undefined) return none(pools);
  return (
    <EventsProvider client={client} pool={pool}>
      <PoolScope pool={pool} pools={pools}>
        {children}
      </PoolScope>
    </EventsProvider>
  );
}

function PoolScope({ pool, pools, children }: { pool: string; pools: Live<Pools>; children: ReactNode }) {
  const { client } = useSession();
  const { parameters } = useRoute();
  const given = parameters.get('job') ?? undefined;
  const params = { path: { pool } };
  const status = useLive(`${pool}/status`, (signal) =>
    readData(client.GET('/api/v1/pools/{pool}', { params, signal })),
  );
  const jobs = useLive<Jobs>(
    `${pool}/jobs`,
    async (signal) => {
      const read = (openOnly?: boolean) =>
        readData(
          client.GET('/api/v1/pools/{pool}/jobs', {
            params: { ...params, query: openOnly ? { openOnly } : {} },
            signal,
          }),
        );
      const [all, open] = await Promise.all([read(), read(true)]);
      return { all: all.jobs, open: open.jobs };
    },
    { everyMs: 10_000, after: ['round.opened', 'round.closed'] },
  );
  const job = given ?? jobs.value?.open[0] ?? jobs.value?.all[0];
  const scope = useMemo(() => ({ pool, pools, job, jobs, status }), [pool, pools, job, jobs, status]);
  return <ScopeContext value={scope}>{children}</ScopeContext>;
}
