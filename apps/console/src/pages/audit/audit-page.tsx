import { iteratePages, readData, type Schemas } from '@broomwagon/admin-client';
import { Button, Code, Drawer, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import { type Column, DataTable } from '../../components/data-table';
import { count, dateTime } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { nowMs } from '../../live/server-clock';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useParameter } from '../../address/route';
import { useScope } from '../../shell/scope';

type Entry = Schemas['AuditEntry'];

/** Maximum entries that are read. */
const MAX_ENTRIES = 2_048;
const HOUR_MS = 3_600_000;
const HOURS = [
  { value: '1', label: 'the last hour' },
  { value: '24', label: 'the last day' },
  { value: '168', label: 'the last week' },
  { value: '2160', label: 'the last 90 days' },
];

/** The audit log: callers of admin-api with their changes and refused calls. */
export default function AuditPage() {
  const { client } = useSession();
  const { pool } = useScope();
  const [hours, setHours] = useParameter('hours', '24');
  const [where, setWhere] = useParameter('where', 'pool');
  const [operation, setOperation] = useParameter('operation', '');
  const [opened, setOpened] = useState<Entry>();
  const log = useLive(
    `${pool}/audit-log/${hours}/${where}/${operation}`,
    async (signal) => {
      const entries: Entry[] = [];
      const query = {
        sinceMs: Math.round(nowMs() - Number(hours) * HOUR_MS),
        ...(where === 'pool' ? { pool } : {}),
        ...(operation === '' ? {} : { operation }),
      };
      const read = (cursor?: number) =>
        readData(client.GET('/api/v1/audit-log', { params: { query: { ...query, cursor } }, signal }));
      for await (const page of iteratePages(read)) {
        entries.push(...page.entries);
        if (entries.length > MAX_ENTRIES) entries.splice(0, entries.length - MAX_ENTRIES);
      }
      return entries.toReversed();
    },
    { everyMs: 15_000 },
  );
  const columns = useMemo(() => buildColumns(setOpened), []);
  return (
    <Stack gap="md">
      <Group gap="xs">
        <Select
          aria-label="Time of the changes"
          size="xs"
          data={HOURS}
          value={hours}
          allowDeselect={false}
          onChange={(next) => setHours(next!)}
        />
        <Select
          aria-label="Pool of the changes"
          size="xs"
          data={[
            { value: 'pool', label: `pool ${pool}` },
            { value: 'all', label: 'all pools, and tokens' },
          ]}
          value={where}
          allowDeselect={false}
          onChange={(next) => setWhere(next!)}
        />
        <TextInput
          aria-label="Operation of the changes"
          size="xs"
          placeholder="operation, e.g. pool.pause"
          value={operation}
          onChange={(event) => setOperation(event.currentTarget.value)}
        />
      </Group>
      <LiveData live={log} what="the audit log">
        {(entries) => (
          <>
            <DataTable
              label="Changes, latest first"
              columns={columns}
              rows={entries}
              toKey={({ requestId, operation: name, atMs }) => `${requestId} ${name} ${atMs}`}
              empty="Nobody has changed anything in this time."
              height={640}
            />
            <Text size="xs" c="dimmed">
              {entries.length === MAX_ENTRIES
                ? `These are the last ${count(MAX_ENTRIES)} changes.`
                : `Changes: ${count(entries.length)}.`}
            </Text>
          </>
        )}
      </LiveData>
      <Drawer
        opened={opened !== undefined}
        onClose={() => setOpened(undefined)}
        position="right"
        size="lg"
        title={opened && `${opened.operation} by ${opened.actor}`}
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <Code block>{JSON.stringify(opened, null, 2)}</Code>
      </Drawer>
    </Stack>
  );
}

function buildColumns(open: (entry: Entry) => void): Column<Entry>[] {
  return [
    { title: 'Time', value: ({ atMs }) => atMs, format: dateTime },
    { title: 'Who', value: ({ actor }) => actor },
    { title: 'Role', value: ({ role }) => role },
    { title: 'Operation', value: ({ operation }) => operation },
    { title: 'Pool', value: ({ pool }) => pool },
    { title: 'Result', value: ({ result }) => result },
    {
      title: 'Details',
      cell: (entry) => (
        <Button size="compact-xs" variant="default" onClick={() => open(entry)}>
          Show
        </Button>
      ),
    },
  ];
}
