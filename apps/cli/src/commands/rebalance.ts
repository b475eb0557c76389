import { randomUUID } from 'node:crypto';
import { readData, type Schemas } from '@broomwagon/admin-client';
import type { Command } from 'commander';
import type { Act } from '../session';
import { formatFields, formatTable } from '../tables';

const PLAN = '/api/v1/pools/{pool}/rebalance/plans/{planId}';

export function addRebalance(program: Command, act: Act): void {
  const rebalance = program.command('rebalance').description('moves of running requests to other servers');
  rebalance
    .command('plan')
    .description('makes a plan and keeps it for an hour; moves nothing')
    .option('--id <planId>', 'id of the plan (default: a random one)')
    .action(
      act(async (session, { id: planId = randomUUID() }: { id?: string }) => {
        const params = { path: { pool: await session.pool() } };
        const call = session.client.POST('/api/v1/pools/{pool}/rebalance/plans', { params, body: { planId } });
        await session.show(await readData(call), planText);
      }),
    );
  rebalance
    .command('apply <planId>')
    .alias('execute')
    .description('executes a plan; a move whose request or server has changed is dropped')
    .action(
      act(async (session, planId: string) => {
        const path = { pool: await session.pool(), planId };
        await session.confirm(`Execute plan ${planId} of pool ${path.pool}?`);
        const call = session.client.POST(`${PLAN}/execute`, { params: { path }, body: {} });
        await session.show(await readData(call), planText);
      }),
    );
  rebalance
    .command('status <planId>')
    .description('shows a plan and what became of each move')
    .action(
      act(async (session, planId: string) => {
        const path = { pool: await session.pool(), planId };
        const read = (cursor?: number) => readData(session.client.GET(PLAN, { params: { path, query: { cursor } } }));
        const pages = await session.all(read, (page) => [page]);
        const { cursor: _cursor, ...first } = pages[0]!;
        await session.show({ ...first, results: pages.flatMap(({ results }) => results) }, planText);
      }),
    );
}

function planText({ results, ...summary }: Omit<Schemas['RebalanceStatus'], 'cursor'>): string {
  return `${formatFields(summary)}\n\n${formatTable(results.map(moveRow))}`;
}

function moveRow(move: Schemas['MoveStatus']) {
  const { requestId, leaseId, fromServerId, toServerId, purpose, state, refusal, times } = move;
  const { stopMs, placeMs, resumeMs, firstTokenMs } = times ?? {};
  const row = { move: requestId ?? leaseId, from: fromServerId, to: toServerId, purpose, state, refusal };
  return { ...row, stopMs, placeMs, resumeMs, firstTokenMs };
}
