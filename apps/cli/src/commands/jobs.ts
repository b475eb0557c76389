import { readData, type Schemas } from '@broomwagon/admin-client';
import type { Command } from 'commander';
import { number, wholeNumber } from '../arguments';
import { UsageError } from '../failures';
import type { Act, Session } from '../session';
import { formatFields, formatTable, formatTime } from '../tables';

const POOL = '/api/v1/pools/{pool}';
const JOB = `${POOL}/jobs/{job}` as const;
interface QuotaOptions {
  weight?: number;
  maxInFlight?: number;
  ifVersion?: number;
}

/** Adds the commands of jobs and pools. */
export function addJobs(program: Command, act: Act): void {
  const jobs = program.command('jobs').description('runs of trainers');
  jobs
    .command('list', { isDefault: true })
    .description('lists the jobs of the pool')
    .action(
      act(async (session) => {
        const pool = await session.pool();
        const found: Schemas['JobStatus'][] = [];
        for (const job of await session.jobs(pool)) found.push(await readJob(session, pool, job));
        await session.show({ jobs: found }, () => formatTable(found.map(jobRow)));
      }),
    );
  jobs
    .command('get <job>')
    .description('shows everything about a job')
    .action(
      act(async (session, job: string) => {
        await session.show(await readJob(session, await session.pool(), job), formatFields);
      }),
    );
  jobs
    .command('quota <job>')
    .description('shows the quota of a job, or replaces it')
    .option('--weight <x>', 'share of the pool in relation to other jobs', number)
    .option('--max-in-flight <n>', 'maximum requests at the same time; 0 stops the job', wholeNumber)
    .option('--if-version <n>', 'refuse when the version is another one', wholeNumber)
    .action(
      act(async (session, job: string, { weight, maxInFlight, ifVersion }: QuotaOptions) => {
        const params = { path: { pool: await session.pool(), job } };
        const isRead = weight === undefined && maxInFlight === undefined;
        if (isRead && ifVersion !== undefined) throw new UsageError('--if-version is for a change');
        const present = await readData(session.client.GET(`${JOB}/quota`, { params }));
        if (isRead) return session.show(present, formatFields);
        const quota = { weight: weight ?? present.quota.weight, maxInFlight: maxInFlight ?? present.quota.maxInFlight };
        const body = { quota, ifVersion: ifVersion ?? present.version };
        await session.show(await readData(session.client.PATCH(`${JOB}/quota`, { params, body })), formatFields);
      }),
    );
  jobs
    .command('ledger <job>')
    .description('shows what the tail policy of a job has cost')
    .action(
      act(async (session, job: string) => {
        const params = { path: { pool: await session.pool(), job } };
        await session.show(await readData(session.client.GET(`${JOB}/ledger`, { params })), formatFields);
      }),
    );
  jobs
    .command('snapshots <job>')
    .description('lists the snapshots that a job can be restored from')
    .action(
      act(async (session, job: string) => {
        const params = { path: { pool: await session.pool(), job } };
        const reply = await readData(session.client.GET(`${JOB}/snapshots`, { params }));
        await session.show(reply, ({ snapshots }) => formatTable(snapshots.map(snapshotRow)));
      }),
    );
  jobs
    .command('delete <job>')
    .description('deletes a job with its rounds, queue and snapshots')
    .option('--force', 'also with an open round: its requests are dropped')
    .action(
      act(async (session, job: string, { force }: { force?: true }) => {
        const path = { pool: await session.pool(), job };
        await session.confirm(`Delete job ${job} of pool ${path.pool} with everything that it has generated?`);
        const reply = await readData(session.client.DELETE(JOB, { params: { path, query: { force } } }));
        await session.show(reply, ({ state }) => `${job}: ${state}`);
      }),
    );
  addPools(program, act);
}

function addPools(program: Command, act: Act): void {
  const pools = program.command('pools').description('pools');
  pools
    .command('list', { isDefault: true })
    .description('lists the pools that the token may use')
    .action(
      act(async (session) => {
        const reply = await readData(session.client.GET('/api/v1/pools'));
        await session.show(reply, (found) => formatTable(found.pools.map((pool) => ({ pool }))));
      }),
    );
  pools
    .command('delete <pool>')
    .description('deletes a pool with its jobs, settings and counts')
    .option('--force', 'also with jobs')
    .action(
      act(async (session, pool: string, { force }: { force?: true }) => {
        const given = session.options.pool;
        if (given !== undefined && given !== pool) throw new UsageError(`--pool is ${given}, not ${pool}`);
        await session.confirm(`Delete pool ${pool} with all its jobs and settings?`);
        const call = session.client.DELETE(POOL, { params: { path: { pool }, query: { force } } });
        await session.show(await readData(call), ({ jobs }) => `${pool}: deleted, with ${jobs} jobs`);
      }),
    );
}

function readJob({ client }: Session, pool: string, job: string): Promise<Schemas['JobStatus']> {
  return readData(client.GET(JOB, { params: { path: { pool, job } } }));
}

function jobRow({ job, stepsTrained, openRoundId, requests, longtail }: Schemas['JobStatus']) {
  const { pending, claimed, running, cutting } = requests;
  return {
    job,
    'steps trained': stepsTrained,
    round: openRoundId,
    waiting: pending,
    running: claimed + running + cutting,
    'long tail': longtail.groups + longtail.settlingGroups,
  };
}

function snapshotRow({ tag, step, groups, requests, savedAtMs }: Schemas['JobSnapshotStatus']) {
  return { tag, step, groups, requests, saved: formatTime(savedAtMs) };
}
