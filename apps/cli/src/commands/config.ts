import { AdminApiError, readData, type Schemas } from '@broomwagon/admin-client';
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
    .description('shows the settings: values in force, defaults, and who changed what')
    .action(
      act(async (session) => {
        const pool = await session.pool();
        const reply = await readData(session.client.GET(CONFIG, { params: { path: { pool } } }));
        const changes = await listChanges(session, pool);
        await session.show({ ...reply, changes }, () => presentText(reply, changes));
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

/** Last change of a setting: the actor, and the time. */
type Changes = Record<string, Pick<Schemas['AuditEntry'], 'actor' | 'atMs'>>;

/** The last change of each setting, by name. Undefined for a token that may not read the audit log. */
async function listChanges(session: Session, pool: string): Promise<Changes | undefined> {
  const changes: Changes = {};
  try {
    for (const operation of ['pool.configure', 'pool.rollback'] as const) {
      const read = (cursor?: number) => {
        const query = { pool, operation, sinceMs: 0, cursor };
        return readData(session.client.GET('/api/v1/audit-log', { params: { query } }));
      };
      for (const { actor, atMs, result, before, after } of await session.all(read, ({ entries }) => entries)) {
        if (result !== 'done') continue;
        for (const name of changedNames(before, after)) {
          if ((changes[name]?.atMs ?? 0) <= atMs) changes[name] = { actor, atMs };
        }
      }
    }
    return changes;
  } catch (error) {
    const isHidden = error instanceof AdminApiError && (error.status === 403 || error.code === 'UNAVAILABLE');
    if (isHidden) return undefined;
    throw error;
  }
}

/** Names of the settings that differ between two states of the audit log. */
function changedNames(before: unknown, after: unknown): string[] {
  const [old, made] = [before, after].map(
    (state) => ((state ?? {}) as { settings?: Record<string, unknown> }).settings ?? {},
  ) as [Record<string, unknown>, Record<string, unknown>];
  return Object.keys({ ...old, ...made }).filter((name) => JSON.stringify(old[name]) !== JSON.stringify(made[name]));
}

function presentText(reply: Schemas['PoolSettingsReply'], changes: Changes | undefined): string {
  const { settings, defaults = {}, effective = {}, ...version } = reply;
  const shown: Record<string, unknown> = { ...defaults, ...settings, ...effective };
  const rows = Object.keys(shown)
    .toSorted((one, other) => (one < other ? -1 : 1))
    .map((name) => {
      const { actor, atMs } = changes?.[name] ?? {};
      const value = shown[name];
      const preset = (defaults as Record<string, unknown>)[name];
      const isSet = Object.hasOwn(settings, name);
      return { setting: name, value, default: preset, set: isSet ? 'yes' : '', by: actor, at: formatTime(atMs) };
    });
  const hidden =
    changes === undefined ? ['(who changed a setting is in the audit log: it needs the role operator)'] : [];
  return [formatFields(version), formatTable(rows), ...hidden].join('\n\n');
}

function settingsText({ version, policy, nextPolicy, settings }: Schemas['PoolSettingsReply']): string {
  return formatFields({ version, policy, ...(nextPolicy === undefined ? {} : { nextPolicy }), ...settings });
}
