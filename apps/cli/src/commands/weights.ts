import { randomUUID } from 'node:crypto';
import { readData, type Schemas } from '@broomwagon/admin-client';
import { type Command, Option } from 'commander';
import { durationOption, wholeNumber } from '../arguments';
import type { Act } from '../session';
import { formatFields, formatTable } from '../tables';

const WEIGHTS = '/api/v1/pools/{pool}/weights';
interface BeginOptions {
  mode: Schemas['WeightSyncMode'];
  deadline: number;
  id?: string;
}

/** Adds the commands of changes of weights. */
export function addWeights(program: Command, act: Act): void {
  const weights = program.command('weights').description('changes of the weights of the pool');
  weights
    .command('status', { isDefault: true })
    .description('shows the version, the change under way, and which servers have the weights')
    .option('--id <syncId>', 'a change that has ended less than an hour ago')
    .action(
      act(async (session, { id: syncId }: { id?: string }) => {
        const path = { pool: await session.pool() };
        const read = (cursor = '0') =>
          readData(session.client.GET(WEIGHTS, { params: { path, query: { syncId, cursor } } }));
        const pages = await session.all(read, (page) => [page]);
        const { version, sync } = pages[0]!;
        const servers = pages.flatMap((page) => page.servers);
        await session.show({ version, sync, servers }, () =>
          [formatFields({ version, sync }), formatTable(servers.map(serverRow))].join('\n\n'),
        );
      }),
    );
  weights
    .command('begin')
    .argument('<version>', 'of the new weights', wholeNumber)
    .description('starts a change by hand, for example after a trainer has died: the pool pauses until commit')
    .addOption(
      new Option('--mode <mode>', 'what becomes of running requests')
        .choices(['abort', 'wait', 'keep'] satisfies Schemas['WeightSyncMode'][])
        .default('abort'),
    )
    .addOption(durationOption('--deadline <duration>', 'time until the rollback', '2m'))
    .option('--id <syncId>', 'id of the change (default: a random one)')
    .action(
      act(async (session, version: number, { mode, deadline, id = randomUUID() }: BeginOptions) => {
        const path = { pool: await session.pool() };
        await session.confirm(`Stop leases of pool ${path.pool} until version ${version} is committed?`);
        const body = { syncId: id, version, mode, deadlineMs: deadline };
        await session.show(await readData(session.client.POST(WEIGHTS, { params: { path }, body })), formatFields);
      }),
    );
  for (const [name, about] of [
    ['commit', 'ends a change: the engines have the new weights'],
    ['rollback', 'ends a change: the engines keep or got back the weights before it'],
  ] as const) {
    weights
      .command(`${name} <syncId>`)
      .description(about)
      .action(
        act(async (session, syncId: string) => {
          const path = { pool: await session.pool(), syncId };
          await session.confirm(`End change ${syncId} of the weights of pool ${path.pool} with ${name}?`);
          const call = session.client.POST(`${WEIGHTS}/{syncId}/${name}`, { params: { path }, body: {} });
          await session.show(await readData(call), formatFields);
        }),
      );
  }
}

function serverRow(server: Schemas['WeightServer']) {
  const { serverId, state, weightVersion, inflight, confirmed } = server;
  return {
    server: serverId,
    state,
    weights: weightVersion,
    'in flight': inflight,
    confirmed: confirmed ? 'yes' : 'NO',
  };
}
