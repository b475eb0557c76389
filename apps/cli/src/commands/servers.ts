import { readData, type Schemas } from '@broomwagon/admin-client';
import { Argument, type Command } from 'commander';
import { count, durationOption, label, number } from '../arguments';
import { CommandFailure, UsageError } from '../failures';
import type { Act, Session } from '../session';
import { formatDuration, formatFields, formatTable } from '../tables';

const SERVER = '/api/v1/pools/{pool}/servers/{serverId}';
type Changed = Pick<Schemas['ServerChangeReply'], 'serverId' | 'state'>;

export function addServers(program: Command, act: Act): void {
  const servers = program.command('servers').description('servers (engines) of the pool');
  servers
    .command('list', { isDefault: true })
    .description('lists the servers')
    .action(
      act(async (session) => {
        const found = await listServers(session, await session.pool());
        await session.show({ servers: found }, () => formatTable(found.map(serverRow)));
      }),
    );
  servers
    .command('get <serverId>')
    .description('shows everything about a server')
    .action(
      act(async (session, serverId: string) => {
        const path = { pool: await session.pool(), serverId };
        await session.show(await readData(session.client.GET(SERVER, { params: { path } })), formatFields);
      }),
    );
  servers
    .command('add <serverId> <endpoint>')
    .description('adds a server, or changes one that has the same id')
    .requiredOption('--max-inflight <n>', 'maximum requests at the same time', count)
    .addArgument(new Argument('[dialect]', 'API of the engine').choices(['vllm', 'sglang', 'openai']).default('vllm'))
    .option('--weight <x>', 'capacity in relation to other servers', number)
    .option('--weight-version <n>', 'version of its weights', number)
    .option('--model <name>', 'model to ask for')
    .option('--label <name=text>', 'label; repeatable', label)
    .action(
      act(
        async (session, serverId: string, endpoint: string, dialect: Schemas['EngineDialect'], given: ServerFields) => {
          const { maxInflight, weight, weightVersion, model, label: labels } = given;
          const body = { serverId, endpoint, dialect, maxInflight: maxInflight!, weight, weightVersion, model, labels };
          const params = { path: { pool: await session.pool() } };
          await showChange(session, session.client.POST('/api/v1/pools/{pool}/servers', { params, body }));
        },
      ),
    );
  servers
    .command('patch <serverId>')
    .description('changes fields of a server; the others stay')
    .option('--max-inflight <n>', 'maximum requests at the same time', count)
    .option('--weight <x>', 'capacity in relation to other servers', number)
    .option('--weight-version <n>', 'version of its weights', number)
    .option('--label <name=text>', 'label; repeatable, replaces all labels', label)
    .action(
      act(async (session, serverId: string, { maxInflight, weight, weightVersion, label: labels }: ServerFields) => {
        const body = { maxInflight, weight, weightVersion, labels };
        if (Object.values(body).every((value) => value === undefined))
          throw new UsageError('there is nothing to change');
        const params = { path: { pool: await session.pool(), serverId } };
        await showChange(session, session.client.PATCH(SERVER, { params, body }));
      }),
    );
  servers
    .command('remove <serverId>')
    .description('removes a server; its requests run elsewhere')
    .action(
      act(async (session, serverId: string) => {
        const path = { pool: await session.pool(), serverId };
        await session.confirm(`Remove server ${serverId} of pool ${path.pool}?`);
        const reply = await readData(session.client.DELETE(SERVER, { params: { path } }));
        if (!reply.removed) throw new CommandFailure(`there is no server ${serverId}`);
        await session.show(reply, () => `${serverId}: removed`);
      }),
    );
  servers
    .command('running <serverId>')
    .alias('calls')
    .description('shows what runs on a server: calls by age, with their requests and tokens')
    .option('--limit <n>', 'maximum calls', count, 100)
    .action(
      act(async (session, serverId: string, { limit }: { limit: number }) => {
        const path = { pool: await session.pool(), serverId };
        const read = (cursor?: string) =>
          readData(session.client.GET(`${SERVER}/calls`, { params: { path, query: { cursor } } }));
        let server: Omit<Schemas['ListServerCallsReply'], 'calls' | 'cursor'> | undefined;
        const found = await session.all(
          read,
          ({ calls, cursor: _cursor, ...rest }) => {
            server ??= rest;
            return calls;
          },
          limit,
        );
        const calls = found.toSorted((one, other) => other.ageMs - one.ageMs);
        await session.show({ ...server, calls }, () =>
          [formatFields({ ...server }), formatTable(calls.map(callRow))].join('\n\n'),
        );
      }),
    );
  servers
    .command('reconcile <serverId>')
    .description('makes workers prove their leases on a server, when leases and the load of the engine differ')
    .action(
      act(async (session, serverId: string) => {
        const path = { pool: await session.pool(), serverId };
        const read = (cursor?: string) =>
          readData(session.client.POST(`${SERVER}/reconcile`, { params: { path }, body: { cursor } }));
        const pages = await session.all(read, (page) => [page]);
        const { cursor: _cursor, ...first } = pages[0]!;
        const returned = pages.reduce((sum, page) => sum + page.returned, 0);
        await session.show({ ...first, returned, holders: pages.flatMap(({ holders }) => holders) }, formatFields);
      }),
    );
  servers
    .command('quarantine <serverId>')
    .description('takes a server out of service at once and keeps it registered; undrain ends it')
    .option('--reason <text>', 'for the log')
    .action(
      act(async (session, serverId: string, { reason }: { reason?: string }) => {
        const path = { pool: await session.pool(), serverId };
        await session.confirm(`Quarantine server ${serverId} of pool ${path.pool}? Its requests run again elsewhere.`);
        await showChange(session, session.client.POST(`${SERVER}/quarantine`, { params: { path }, body: { reason } }));
      }),
    );
  program
    .command('drain <serverId>')
    .description(
      'gives a server no new requests, and removes it with its last one, or at the deadline with all that run',
    )
    .addOption(durationOption('--deadline <duration>', 'time that running requests have', '5m'))
    .action(
      act(async (session, serverId: string, { deadline: deadlineMs }: { deadline: number }) => {
        const path = { pool: await session.pool(), serverId };
        if (deadlineMs === 0)
          await session.confirm(`Remove server ${serverId} at once? Its requests run again elsewhere.`);
        await showChange(session, session.client.POST(`${SERVER}/drain`, { params: { path }, body: { deadlineMs } }));
      }),
    );
  program
    .command('undrain <serverId>')
    .alias('uncordon')
    .description(
      'ends a drain or a cordon; after a quarantine the server is failed until its engine restarts or registers again',
    )
    .action(
      act(async (session, serverId: string) => {
        const path = { pool: await session.pool(), serverId };
        await showChange(session, session.client.POST(`${SERVER}/undrain`, { params: { path } }));
      }),
    );
  program
    .command('cordon <serverId>')
    .description('gives a server no new requests; what runs there continues')
    .action(
      act(async (session, serverId: string) => {
        const path = { pool: await session.pool(), serverId };
        await showChange(session, session.client.POST(`${SERVER}/cordon`, { params: { path } }));
      }),
    );
}

interface ServerFields {
  maxInflight?: number;
  weight?: number;
  weightVersion?: number;
  model?: string;
  label?: Record<string, string>;
}

export function listServers(session: Session, pool: string): Promise<Schemas['ServerStatus'][]> {
  const read = (cursor?: string) =>
    readData(session.client.GET('/api/v1/pools/{pool}/servers', { params: { path: { pool }, query: { cursor } } }));
  return session.all(read, ({ servers }) => servers);
}

export function serverRow(server: Schemas['ServerStatus']) {
  const { serverId, state, inflight, capacity, maxInflight, load, weightVersion, heartbeatAgeMs, dialect } = server;
  return {
    server: serverId,
    state,
    'in flight': `${inflight}/${capacity < maxInflight ? `${capacity} (of ${maxInflight})` : maxInflight}`,
    kv: load?.kvUse === undefined ? undefined : `${Math.round(load.kvUse * 100)} %`,
    weights: weightVersion,
    seen: formatDuration(heartbeatAgeMs),
    interval: formatInterval(server),
    engine: dialect,
  };
}

function callRow({ requestId, state, tokenCount, failures, roundId, workerId, ageMs }: Schemas['ServerCall']) {
  const age = formatDuration(ageMs);
  return { request: requestId, age, state, tokens: tokenCount, failures, round: roundId, worker: workerId };
}

/** Whether the engine takes `stream_interval`, and the tokens of its events if they are not as asked. */
function formatInterval({ capabilities, observedStreamInterval }: Schemas['ServerStatus']): string | undefined {
  if (observedStreamInterval !== undefined) return `not as asked: ${observedStreamInterval}`;
  if (capabilities?.streamInterval === undefined) return undefined;
  return capabilities.streamInterval ? 'yes' : 'no';
}

async function showChange<Reply extends Changed>(
  session: Session,
  call: Promise<{ data?: Reply; error?: unknown; response: Response }>,
): Promise<void> {
  await session.show(await readData(call), ({ serverId, state }) => `${serverId}: ${state}`);
}
