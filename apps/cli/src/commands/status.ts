import { AdminApiError, readData, type Schemas } from '@broomwagon/admin-client';
import type { Command } from 'commander';
import type { Act, Session } from '../session';
import { formatTable, formatTime } from '../tables';
import { formatPart, getFulfilled, throwFailure } from '../parts';
import { entryRow } from './audit';
import { listServers, serverRow } from './servers';

/** A job, with its open round if there is one. */
interface JobView extends Pick<Schemas['JobStatus'], 'job' | 'stepsTrained' | 'longtail' | 'requests'> {
  round?: Schemas['RoundStatus'];
}

export function addStatus(program: Command, act: Act): void {
  program
    .command('status')
    .description('shows the pools, or one pool: its servers, jobs and open rounds')
    .action(
      act(async (session) => {
        const { pool } = session.options;
        const pools = pool === undefined ? (await readData(session.client.GET('/api/v1/pools'))).pools : [pool];
        const [only, ...others] = pools;
        if (only !== undefined && others.length === 0) return showPool(session, only);
        const found = await Promise.allSettled(pools.map((pool) => fetchTotals(session, pool)));
        const status = found.flatMap((one) => getFulfilled(one) ?? []);
        await session.show({ pools: status }, () => formatTable(status.map(poolRow)));
        throwFailure(found);
      }),
    );
}

function fetchTotals(session: Session, pool: string): Promise<Schemas['LoadBalancerStatus']> {
  return readData(session.client.GET('/api/v1/pools/{pool}', { params: { path: { pool } } }));
}

function poolRow(status: Schemas['LoadBalancerStatus']) {
  const { pool, paused, servers, readyServers, leases, waiters, workers, sessions } = status;
  return {
    pool,
    state: paused ? 'PAUSED' : 'running',
    'servers ready': `${readyServers}/${servers}`,
    leases,
    waiting: waiters,
    workers,
    sessions,
  };
}

/** Shows all parts that can be read. Fails afterwards if a part could not be read. */
async function showPool(session: Session, pool: string): Promise<void> {
  const params = { path: { pool } };
  const [totals, servers, jobs, weights, lost] = await Promise.allSettled([
    fetchTotals(session, pool),
    listServers(session, pool),
    listJobs(session, pool),
    readData(session.client.GET('/api/v1/pools/{pool}/weights', { params })),
    listLostChanges(session, pool),
  ] as const);
  const parts = [totals, servers, jobs, weights, lost];
  if (parts.every(({ status }) => status === 'rejected')) throwFailure(parts);
  const { perServer: _perServer, ...sums } = getFulfilled(totals) ?? {};
  const sync = getFulfilled(weights)?.sync;
  const lostChanges = getFulfilled(lost);
  const shown = { ...sums, sync, perServer: getFulfilled(servers), jobs: getFulfilled(jobs), lostChanges };
  await session.show(shown, () =>
    [
      formatPart(totals, (status) => formatTable([poolRow(status)])),
      formatPart(servers, (all) => formatTable(all.map(serverRow))),
      formatPart(jobs, (all) => formatTable(all.map(jobRow))),
      ...unserved(getFulfilled(servers) ?? [], getFulfilled(jobs) ?? []),
      ...(lostChanges?.length === 0 ? [] : [formatPart(lost, lostText)]),
      ...(sync?.state === 'begun'
        ? [`The weights change to version ${sync.version} (mode ${sync.mode}) since ${formatTime(sync.startedAtMs)}.`]
        : []),
    ].join('\n\n'),
  );
  throwFailure(parts);
}

/** Reasons why servers take no requests, and rounds make no progress. */
function unserved(servers: Awaited<ReturnType<typeof listServers>>, jobs: readonly JobView[]): string[] {
  const unknown = servers.filter(({ weightsUnknown }) => weightsUnknown === true).map(({ serverId }) => serverId);
  const advice = 'load them again, or report the version: servers patch ID --weight-version N';
  return [
    ...(unknown.length === 0 ? [] : [`The weights of ${unknown.join(', ')} are unknown: ${advice}.`]),
    ...jobs.flatMap(({ job, round }) => (round?.blockedReason ? [`Job ${job}: ${round.blockedReason.message}.`] : [])),
  ];
}

/**
 * Lost changes of a pool. Empty for the token of a viewer, who may not read changes, and for an admin-api of the
 * previous release, which has no such route.
 */
async function listLostChanges({ client }: Session, pool: string): Promise<Schemas['AuditEntry'][]> {
  try {
    const params = { path: { pool } };
    return (await readData(client.GET('/api/v1/pools/{pool}/lost-changes', { params }))).changes;
  } catch (error) {
    if (error instanceof AdminApiError && (error.status === 403 || error.status === 404)) return [];
    throw error;
  }
}

function lostText(changes: readonly Schemas['AuditEntry'][]): string {
  const title = 'Redis was restarted or set back: check these changes, and make the lost ones again.';
  return [title, formatTable(changes.map(entryRow))].join('\n');
}

async function listJobs(session: Session, pool: string): Promise<JobView[]> {
  const jobs: JobView[] = [];
  for (const job of await session.jobs(pool)) jobs.push(await readJob(session, pool, job));
  return jobs;
}

async function readJob({ client }: Session, pool: string, job: string): Promise<JobView> {
  const path = { pool, job };
  const status = await readData(client.GET('/api/v1/pools/{pool}/jobs/{job}', { params: { path } }));
  const { stepsTrained, longtail, requests, openRoundId: roundId } = status;
  if (roundId === undefined) return { job, stepsTrained, longtail, requests };
  const params = { path: { ...path, roundId } };
  const round = await readData(client.GET('/api/v1/pools/{pool}/jobs/{job}/rounds/{roundId}', { params }));
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
