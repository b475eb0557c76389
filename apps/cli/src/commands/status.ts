import { dataOf, type Schemas } from '@broomwagon/admin-client';
import type { Command } from 'commander';
import type { Act, Session } from '../session';
import { tableOf } from '../tables';
import { listServers, serverRow } from './servers';

/** A job with its open round, if it has one. */
interface JobView extends Pick<Schemas['JobStatus'], 'job' | 'stepsTrained' | 'longtail' | 'requests'> {
  round?: Schemas['RoundStatus'];
}

export function addStatus(program: Command, act: Act): void {
  program
    .command('status')
    .description('shows the pools, or one pool: its servers, jobs and open rounds')
    .action(
      act(async (session) => {
        const pools = session.options.pool
          ? [session.options.pool]
          : (await dataOf(session.client.GET('/api/v1/pools'))).pools;
        const [only, ...others] = pools;
        if (only !== undefined && others.length === 0) return showPool(session, only);
        const status = await Promise.all(pools.map((pool) => totals(session, pool)));
        return session.show({ pools: status }, () => tableOf(status.map(poolRow)));
      }),
    );
}

function totals(session: Session, pool: string): Promise<Schemas['LoadBalancerStatus']> {
  return dataOf(session.client.GET('/api/v1/pools/{pool}', { params: { path: { pool } } }));
}

function poolRow(status: Schemas['LoadBalancerStatus']) {
  const { pool, servers, readyServers, leases, waiters, workers, sessions } = status;
  return { pool, 'servers ready': `${readyServers}/${servers}`, leases, waiting: waiters, workers, sessions };
}

async function showPool(session: Session, pool: string): Promise<void> {
  const [status, servers, names] = await Promise.all([
    totals(session, pool),
    listServers(session, pool),
    session.jobs(pool),
  ]);
  const jobs: JobView[] = [];
  for (const job of names) jobs.push(await readJob(session, pool, job));
  const { perServer: _perServer, ...sums } = status;
  await session.show({ ...sums, perServer: servers, jobs }, () =>
    [tableOf([poolRow(status)]), tableOf(servers.map(serverRow)), tableOf(jobs.map(jobRow))].join('\n\n'),
  );
}

async function readJob({ client }: Session, pool: string, job: string): Promise<JobView> {
  const path = { pool, job };
  const status = await dataOf(client.GET('/api/v1/pools/{pool}/jobs/{job}', { params: { path } }));
  const { stepsTrained, longtail, requests, openRoundId: roundId } = status;
  if (roundId === undefined) return { job, stepsTrained, longtail, requests };
  const params = { path: { ...path, roundId } };
  const round = await dataOf(client.GET('/api/v1/pools/{pool}/jobs/{job}/rounds/{roundId}', { params }));
  return { job, stepsTrained, longtail, requests, round };
}

function jobRow({ job, stepsTrained, longtail, requests, round }: JobView) {
  const { pending, claimed, running, cutting } = requests;
  return {
    job,
    'steps trained': stepsTrained,
    round: round && `${round.roundId} (${round.kind}, ${round.state})`,
    groups: round && `${round.acceptedGroups}/${round.neededGroups}`,
    waiting: pending,
    running: claimed + running + cutting,
    'long tail': longtail.groups + longtail.settlingGroups,
  };
}
