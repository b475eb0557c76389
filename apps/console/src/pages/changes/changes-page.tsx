import { readData, type Schemas } from '@broomwagon/admin-client';
import { Alert, Anchor, Code, Stack, Text } from '@mantine/core';
import { type Column, DataTable } from '../../components/data-table';
import { dateTime } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { Section } from '../../components/stat';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { buildHref } from '../../address/route';
import { useScope } from '../../shell/scope';

type Version = Schemas['PoolVersion'];
type Entry = Schemas['AuditEntry'];

const VERSIONS: Column<Version>[] = [
  { title: 'Version', value: ({ version }) => version, align: 'right', width: 80 },
  { title: 'In force since', value: ({ sinceMs }) => sinceMs, format: dateTime, width: 200 },
  {
    title: 'Settings that are not the defaults',
    value: ({ settings }) => JSON.stringify(settings),
    cell: ({ settings }) => <Code>{JSON.stringify(settings)}</Code>,
  },
];
const LOST: Column<Entry>[] = [
  { title: 'Time', value: ({ atMs }) => atMs, format: dateTime },
  { title: 'Who', value: ({ actor }) => actor },
  { title: 'Operation', value: ({ operation }) => operation },
  { title: 'Request', cell: ({ request }) => <Code>{JSON.stringify(request)}</Code> },
];

/** Settings of the pool with their earlier versions, and changes that a restart of Redis may have undone. */
export default function ChangesPage() {
  const { client } = useSession();
  const { pool } = useScope();
  const params = { path: { pool } };
  const history = useLive(
    `${pool}/history`,
    (signal) => readData(client.GET('/api/v1/pools/{pool}/config/history', { params, signal })),
    { everyMs: 10_000 },
  );
  const lost = useLive(
    `${pool}/lost-changes`,
    (signal) => readData(client.GET('/api/v1/pools/{pool}/lost-changes', { params, signal })),
    { everyMs: 10_000, after: ['pool.set-back'] },
  );
  return (
    <Stack gap="md">
      <Section title="Changes that Redis may have lost">
        <LiveData live={lost} what="the lost changes">
          {(value) => <LostChanges {...value} />}
        </LiveData>
      </Section>
      <Section
        title="Settings of the pool"
        aside={
          <Anchor size="sm" href={buildHref('audit', { operation: 'pool.configure' })}>
            Who changed them
          </Anchor>
        }
      >
        <LiveData live={history} what="the versions of the settings">
          {({ versions }) => (
            <DataTable
              label="Versions of the settings, latest first"
              columns={VERSIONS}
              rows={versions}
              toKey={({ version }) => String(version)}
              empty="The pool has the default settings."
            />
          )}
        </LiveData>
      </Section>
    </Stack>
  );
}

function LostChanges({ setBackAtMs, changes }: Schemas['LostChangesReply']) {
  if (setBackAtMs === undefined) {
    return <Text size="sm">None: Redis was not restarted or set back in the last 10 minutes.</Text>;
  }
  return (
    <>
      <Alert color="orange" title={`Redis was restarted or set back at ${dateTime(setBackAtMs)}`}>
        Check whether each change is still in force, and repeat a lost one.
      </Alert>
      <DataTable
        label="Changes that may be lost"
        columns={LOST}
        rows={changes}
        toKey={({ requestId }) => requestId}
        empty="Nobody has changed anything in the 10 minutes before."
        height={300}
      />
    </>
  );
}
