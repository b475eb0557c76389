import { readData, type Schemas } from '@broomwagon/admin-client';
import type { Command } from 'commander';
import { assignment, number, repeated } from '../arguments';
import { UsageError } from '../failures';
import type { Act, Session } from '../session';
import { formatFields, formatTable, formatTime } from '../tables';

const CONFIG = '/api/v1/pools/{pool}/config';
interface OfVersion {
  ifVersion?: number;
}

export function addConfig(program: Command, act: Act): void {
  const config = program.command('config').description('settings of the pool, with versions');
  const ifVersion = ['--if-version <n>', 'refuse when the version is another one', number] as const;
  config
    .command('get', { isDefault: true })
    .description('shows the settings')
    .action(
      act(async (session) => {
        const params = { path: { pool: await session.pool() } };
        await session.show(await readData(session.client.GET(CONFIG, { params })), settingsText);
      }),
    );
  config
    .command('patch')
    .description('changes settings; they apply at once')
    .argument('[settings...]', 'for example policy=least-tokens maxSessions=1000', assignment)
    .option('--reset <name>', 'set a setting to its default; repeatable', repeated)
    .option(...ifVersion)
    .action(
      act(async (session, values: Record<string, unknown>, { reset, ifVersion }: OfVersion & { reset?: string[] }) => {
        if (Object.keys(values).length === 0 && reset === undefined) throw new UsageError('there is nothing to change');
        const params = { path: { pool: await session.pool() } };
        // The service checks names and values.
        const options = { reset: reset as Schemas['PoolSettingName'][] | undefined, ifVersion };
        const twice = Object.keys(values).find((name) => Object.hasOwn(options, name));
        if (twice !== undefined) throw new UsageError(`${twice} is no setting: use --reset or --if-version`);
        const body = { ...values, ...options };
        await session.show(await readData(session.client.PATCH(CONFIG, { params, body })), settingsText);
      }),
    );
  config
    .command('history')
    .description('lists the last 32 versions, latest first')
    .action(
      act(async (session) => {
        const params = { path: { pool: await session.pool() } };
        await session.show(await readData(session.client.GET(`${CONFIG}/history`, { params })), ({ versions }) =>
          formatTable(
            versions.map(({ version, sinceMs, settings }) => ({ version, since: formatTime(sinceMs), settings })),
          ),
        );
      }),
    );
  config
    .command('rollback')
    .description('sets the settings of a version again, with the present version of the weights')
    .argument('<version>', 'from the history', number)
    .option(...ifVersion)
    .action(
      act(async (session, version: number, { ifVersion }: OfVersion) => {
        const params = { path: { pool: await session.pool() } };
        const body = { version, ifVersion };
        await session.show(await readData(session.client.POST(`${CONFIG}/rollback`, { params, body })), settingsText);
      }),
    );
  for (const name of ['pause', 'resume'] as const) {
    const about = { pause: 'starts no requests on the servers of the pool', resume: 'ends a pause' }[name];
    program
      .command(name)
      .description(about)
      .action(act((session) => setPause(session, name)));
  }
}

async function setPause(session: Session, name: 'pause' | 'resume'): Promise<void> {
  const pool = await session.pool();
  if (name === 'pause') await session.confirm(`Pause pool ${pool}? Running requests continue, no other one starts.`);
  const call = session.client.POST(`/api/v1/pools/{pool}/${name}`, { params: { path: { pool } } });
  await session.show(await readData(call), ({ paused, changed }) => {
    return `${pool}: ${paused ? 'paused' : 'running'}${changed ? '' : ' (as before)'}`;
  });
}

function settingsText({ settings, ...version }: Schemas['PoolSettingsReply']): string {
  return formatFields({ ...version, ...settings });
}
