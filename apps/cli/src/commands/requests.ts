import { randomUUID } from 'node:crypto';
import { readData, type Schemas } from '@broomwagon/admin-client';
import type { Command } from 'commander';
import { count, durationOption } from '../arguments';
import { CommandFailure, UsageError } from '../failures';
import type { Act } from '../session';
import { formatDuration, formatFields, formatTable } from '../tables';

interface Selector {
  session?: string;
  group?: string;
  server?: string;
  worker?: string;
  round?: string;
  job?: string;
  all?: true;
}
interface AbortOptions extends Selector {
  wait: number;
  reason?: string;
}
interface ListOptions extends Pick<Selector, 'job' | 'round' | 'worker'> {
  limit: number;
  state?: 'pending' | 'claimed' | 'running' | 'cutting' | 'unfinished';
}

export function addRequests(program: Command, act: Act): void {
  const requests = program.command('requests').description('requests that are not finished');
  requests
    .command('list', { isDefault: true })
    .description('lists requests')
    .option('--job <job>', 'of this job (default: the only one)')
    .option('--round <roundId>', 'of this round')
    .option('--worker <workerId>', 'of this worker')
    .option('--state <state>', 'pending, claimed, running, cutting or unfinished')
    .option('--limit <n>', 'maximum requests', count, 100)
    .action(
      act(async (session, { limit, round: roundId, worker: workerId, state, ...given }: ListOptions) => {
        const path = { pool: await session.pool() };
        const job = workerId === undefined ? await session.job(path.pool, given.job) : given.job;
        const read = (cursor?: string) => {
          const query = { cursor, job, roundId, workerId, state };
          return readData(session.client.GET('/api/v1/pools/{pool}/requests', { params: { path, query } }));
        };
        const found = await session.all(read, (page) => page.requests, limit);
        await session.show({ requests: found }, () => formatTable(found.map(requestRow)));
      }),
    );
  requests
    .command('get <requestId>')
    .description('shows a request with its segments')
    .action(
      act(async (session, requestId: string) => {
        const params = { path: { pool: await session.pool(), requestId } };
        const reply = readData(session.client.GET('/api/v1/pools/{pool}/requests/{requestId}', { params }));
        await session.show(await reply, formatFields);
      }),
    );
  program
    .command('abort [requestIds...]')
    .description('stops requests: those named, or those of exactly one option')
    .option('--session <sessionId>', 'those of a session')
    .option('--group <groupId>', 'those of a group; with --job')
    .option('--server <serverId>', 'those that run on a server')
    .option('--worker <workerId>', 'those of a worker')
    .option('--round <roundId>', 'those of a round; with --job')
    .option('--job <job>', 'those of a job')
    .option('--all', 'all of the pool')
    .addOption(durationOption('--wait <duration>', 'how long to wait for the engines to confirm, at most 30s', '10s'))
    .option('--reason <text>', 'stored with the requests')
    .action(
      act(async (session, requestIds: string[], { wait: waitMs, reason, ...selector }: AbortOptions) => {
        const { session: sessionId, group: groupId, server: serverId, worker: workerId, round: roundId } = selector;
        const { job, all } = selector;
        const ids = requestIds.length > 0 ? requestIds : undefined;
        const what = { requestIds: ids, sessionId, groupId, serverId, workerId, roundId, job, all };
        if (Object.values(what).every((value) => value === undefined)) {
          throw new UsageError(
            'name requests, or one of --session, --group, --server, --worker, --round, --job, --all',
          );
        }
        const path = { pool: await session.pool() };
        await session.confirm(
          `Stop ${JSON.stringify(what)} of pool ${path.pool}? What they have generated is dropped.`,
        );
        const abortId = randomUUID();
        const client = session.clientFor(waitMs);
        const read = (cursor?: number) => {
          const body = { abortId, ...what, waitMs, reason, cursor };
          return readData(client.POST('/api/v1/pools/{pool}/requests/abort', { params: { path }, body }));
        };
        const results = await session.all(read, (page) => page.results);
        await session.show({ abortId, results }, () => formatTable(results.map(abortRow)));
        const unknown = results.filter(({ outcome }) => outcome === 'not-found').map(({ requestId }) => requestId);
        if (unknown.length > 0) throw new CommandFailure(`there is no request ${unknown.join(', ')}`);
        const named = groupId ?? roundId;
        if (results.length === 0 && named !== undefined) throw new CommandFailure(`there is no request of ${named}`);
      }),
    );
}

function requestRow({ requestId, state, tokenCount, workerId, serverId, ageMs, failures }: Schemas['RequestStatus']) {
  return {
    request: requestId,
    state,
    tokens: tokenCount,
    worker: workerId,
    server: serverId,
    age: formatDuration(ageMs),
    failures,
  };
}

function abortRow({ requestId, outcome, tokenCount }: Schemas['AbortResult']) {
  return { request: requestId, outcome, tokens: tokenCount };
}
