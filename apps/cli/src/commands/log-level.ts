import { readData, type Schemas } from '@broomwagon/admin-client';
import { Argument, type Command } from 'commander';
import type { Act } from '../session';
import { formatTable } from '../tables';

const LEVELS: readonly Schemas['LogLevel'][] = ['fatal', 'error', 'warn', 'info', 'debug', 'trace'];

export function addLogLevel(program: Command, act: Act): void {
  program
    .command('log-level')
    .description('sets the level of the logs of running services that serve the pool')
    .addArgument(new Argument('<level>', 'until the service restarts').choices(LEVELS))
    .option('--app <name>', 'only of this service, e.g. worker')
    .option('--replica <id>', 'only of this replica')
    .action(
      act(async (session, level: Schemas['LogLevel'], { app, replica }: { app?: string; replica?: string }) => {
        const params = { path: { pool: await session.pool() } };
        const body = { level, app, replicaId: replica };
        const reply = await readData(session.client.PUT('/api/v1/pools/{pool}/log-level', { params, body }));
        await session.show(reply, ({ replicas }) => formatTable(replicas.map((one) => ({ ...one }))));
      }),
    );
}
