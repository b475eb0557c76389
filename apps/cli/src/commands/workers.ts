import { readData, type Schemas } from '@broomwagon/admin-client';
import type { Command } from 'commander';
import { count } from '../arguments';
import { CommandFailure, UsageError } from '../failures';
import type { Act, Session } from '../session';
import { formatDuration, formatFields, formatTable } from '../tables';

const POOL = '/api/v1/pools/{pool}';
interface ListOptions {
  server?: string;
  worker?: string;
  limit: number;
}

/** Adds the commands of workers, and of the leases and sessions that they hold. */
export function addWorkers(program: Command, act: Act): void {
  const workers = program.command('workers').description('processes that run requests');
  workers
    .command('list', { isDefault: true })
    .description('lists the live workers, with their leases and requests')
    .action(
      act(async (session) => {
        const found = await listWorkers(session, await session.pool());
        await session.show({ workers: found }, () => formatTable(found.map(workerRow)));
      }),
    );
  workers
    .command('deregister <workerId>')
    .description('ends a worker that is gone: its requests and leases are returned at once')
    .action(
      act(async (session, workerId: string) => {
        const path = { pool: await session.pool(), workerId };
        const found = (await listWorkers(session, path.pool)).find((one) => one.workerId === workerId);
        if (found === undefined) throw new CommandFailure(`there is no worker ${workerId}`);
        const { workerEpoch, leases, attempts } = found;
        const loss = `Its ${leases} leases and ${attempts} requests are returned, and run again elsewhere`;
        await session.confirm(`End worker ${workerId} of pool ${path.pool}? ${loss}.`);
        const call = session.client.POST(`${POOL}/workers/{workerId}/deregister`, {
          params: { path },
          body: { workerEpoch },
        });
        await session.show(await readData(call), () => `${workerId}: deregistered`);
      }),
    );
  addLeases(program, act);
  addSessions(program, act);
}

function addLeases(program: Command, act: Act): void {
  const leases = program.command('leases').description('calls in flight');
  leases
    .command('list', { isDefault: true })
    .description('lists leases')
    .option('--server <serverId>', 'only on this server')
    .option('--worker <workerId>', 'only of this worker')
    .option('--limit <n>', 'maximum leases', count, 100)
    .action(
      act(async (session, { server: serverId, worker: workerId, limit }: ListOptions) => {
        if (serverId !== undefined && workerId !== undefined) throw new UsageError('name --server or --worker');
        const path = { pool: await session.pool() };
        const read = (cursor?: string) =>
          readData(session.client.GET(`${POOL}/leases`, { params: { path, query: { serverId, workerId, cursor } } }));
        const found = await session.all(read, (page) => page.leases, limit);
        await session.show({ leases: found }, () => formatTable(found.map(leaseRow)));
      }),
    );
  leases
    .command('get <leaseId>')
    .description('shows a lease')
    .action(
      act(async (session, leaseId: string) => {
        const params = { path: { pool: await session.pool(), leaseId } };
        await session.show(await readData(session.client.GET(`${POOL}/leases/{leaseId}`, { params })), formatFields);
      }),
    );
  leases
    .command('release <leaseId>')
    .description('releases a lease whose holder is gone; the room is given to the next call')
    .action(
      act(async (session, leaseId: string) => {
        const path = { pool: await session.pool(), leaseId };
        await session.confirm(`Release lease ${leaseId}? The engine may still run its call.`);
        const reply = await readData(session.client.DELETE(`${POOL}/leases/{leaseId}`, { params: { path } }));
        if (!reply.released) throw new CommandFailure(`the lease was not released: ${reply.reason}`);
        await session.show(reply, () => `${leaseId}: released`);
      }),
    );
}

function addSessions(program: Command, act: Act): void {
  const sessions = program.command('sessions').description('trajectories that stay on one server');
  sessions
    .command('list', { isDefault: true })
    .description('lists sessions with their servers')
    .option('--server <serverId>', 'only on this server')
    .option('--limit <n>', 'maximum sessions', count, 100)
    .action(
      act(async (session, { server: serverId, limit }: ListOptions) => {
        const path = { pool: await session.pool() };
        const read = (cursor?: string) =>
          readData(session.client.GET(`${POOL}/sessions`, { params: { path, query: { serverId, cursor } } }));
        const found = await session.all(read, (page) => page.sessions, limit);
        await session.show({ sessions: found }, () => formatTable(found.map(sessionRow)));
      }),
    );
  sessions
    .command('finish <sessionId>')
    .description('forgets the server of a session; its next call goes to any server')
    .action(
      act(async (session, sessionId: string) => {
        const path = { pool: await session.pool(), sessionId };
        const reply = await readData(session.client.DELETE(`${POOL}/sessions/{sessionId}`, { params: { path } }));
        if (!reply.finished) throw new CommandFailure(`there is no session ${sessionId}`);
        await session.show(reply, () => `${sessionId}: finished`);
      }),
    );
  sessions
    .command('clear')
    .description('forgets the servers of all sessions: their next calls compute their contexts again')
    .action(
      act(async (session) => {
        const path = { pool: await session.pool() };
        await session.confirm(`Forget the servers of ALL sessions of pool ${path.pool}?`);
        const reply = await readData(session.client.POST(`${POOL}/sessions/clear`, { params: { path } }));
        await session.show(reply, ({ cleared }) => `${path.pool}: ${cleared} sessions cleared`);
      }),
    );
}

/** Lists all live workers of a pool. */
export function listWorkers(session: Session, pool: string): Promise<Schemas['WorkerStatus'][]> {
  const read = (cursor?: string) =>
    readData(session.client.GET(`${POOL}/workers`, { params: { path: { pool }, query: { cursor } } }));
  return session.all(read, (page) => page.workers);
}

function workerRow({ workerId, leases, attempts, heartbeatAgeMs, ttlMs, ageMs }: Schemas['WorkerStatus']) {
  const isLate = heartbeatAgeMs > ttlMs;
  return {
    worker: workerId,
    state: isLate ? 'expired' : 'live',
    leases,
    requests: attempts,
    seen: formatDuration(heartbeatAgeMs),
    age: formatDuration(ageMs),
  };
}

function leaseRow({ leaseId, requestId, serverId, workerId, sessionId, ageMs }: Schemas['LeaseStatus']) {
  return {
    lease: leaseId,
    request: requestId,
    server: serverId,
    worker: workerId,
    session: sessionId,
    age: formatDuration(ageMs),
  };
}

function sessionRow({ sessionId, serverId, leases, contextTokens, paused }: Schemas['SessionStatus']) {
  return { session: sessionId, server: serverId, leases, 'context tokens': contextTokens, paused };
}
