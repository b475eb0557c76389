import { readData, type Schemas } from '@broomwagon/admin-client';
import { createContext, type ReactNode, useContext, useMemo } from 'react';
import { EventsProvider } from '../live/events';
import { type Live, useLive } from '../live/use-live';
import { useSession } from '../session/session';
import { useRoute } from './route';

export interface Scope {
  pool: string;
  pools: readonly string[];
  /** The job of the address, otherwise a job with an open round, otherwise the first job; absent without jobs. */
  job?: string;
  jobs: readonly string[];
  status: Live<Schemas['LoadBalancerStatus']>;
}

const ScopeContext = createContext<Scope | undefined>(undefined);

export function useScope(): Scope {
  return useContext(ScopeContext)!;
}

export function useJob(): { pool: string; job: string } {
  const { pool, job } = useScope();
  return { pool, job: job! };
}

/** Finds the pool and the job that the pages show. Without a pool shows `none`. */
export function ScopeProvider({ none, children }: { none: ReactNode; children: ReactNode }) {
  const { client, identity } = useSession();
  const { parameters } = useRoute();
  const pools = useLive('pools', (signal) => readData(client.GET('/api/v1/pools', { signal })), { everyMs: 10_000 });
  const pool = parameters.get('pool') ?? pools.value?.pools[0] ?? identity.pools?.[0];
  if (pool === undefined) return none;
  return (
    <EventsProvider client={client} pool={pool}>
      <PoolScope pool={pool} pools={pools.value?.pools ?? [pool]}>
        {children}
      </PoolScope>
    </EventsProvider>
  );
}

function PoolScope({ pool, pools, children }: { pool: string; pools: readonly string[]; children: ReactNode }) {
  const { client } = useSession();
  const { parameters } = useRoute();
  const given = parameters.get('job') ?? undefined;
  const params = { path: { pool } };
  const status = useLive(`${pool}/status`, (signal) =>
    readData(client.GET('/api/v1/pools/{pool}', { params, signal })),
  );
  const jobs = useLive(
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
  const all = jobs.value?.all ?? [];
  const scope = useMemo(() => ({ pool, pools, job, jobs: all, status }), [pool, pools, job, all, status]);
  return <ScopeContext value={scope}>{children}</ScopeContext>;
}
