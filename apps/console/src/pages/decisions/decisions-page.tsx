import { readData, type Schemas } from '@broomwagon/admin-client';
import { Button, Code, Drawer, Group, ScrollArea, Stack, Switch, Table, Text } from '@mantine/core';
import { useMemo, useState } from 'react';
import { type Column, DataTable } from '../../components/data-table';
import { dateTime } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useParameter } from '../../address/route';
import { useScope } from '../../shell/scope';

type Receipt = Schemas['DecisionRecord'];

export default function DecisionsPage() {
  const { client } = useSession();
  const { pool } = useScope();
  const [full, setFull] = useParameter('full', 'no');
  const isFull = full === 'yes';
  const [opened, setOpened] = useState<Receipt>();
  const query = isFull ? { full: true } : {};
  const decisions = useLive(
    `${pool}/decisions/${isFull}`,
    (signal) => readData(client.GET('/api/v1/pools/{pool}/decisions', { params: { path: { pool }, query }, signal })),
    { everyMs: 5_000 },
  );
  const columns = useMemo(() => buildColumns(setOpened), []);
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          {isFull
            ? 'The last decisions with their whole input: every n-th one, and those of callers that ask.'
            : 'The last 128 decisions.'}
        </Text>
        <Switch
          label="With their whole input"
          checked={isFull}
          onChange={(event) => setFull(event.currentTarget.checked ? 'yes' : 'no')}
        />
      </Group>
      <LiveData live={decisions} what="the decisions">
        {(value) => (
          <DataTable
            label="Decisions, latest first"
            columns={columns}
            rows={value.decisions}
            toKey={({ seq, acquireId }) => `${seq}/${acquireId}`}
            empty="No server was chosen yet."
            height={640}
          />
        )}
      </LiveData>
      <Drawer
        opened={opened !== undefined}
        onClose={() => setOpened(undefined)}
        position="right"
        size="lg"
        title={opened && `Decision ${opened.seq}`}
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {opened && <ReceiptView receipt={opened} />}
      </Drawer>
    </Stack>
  );
}

function buildColumns(open: (receipt: Receipt) => void): Column<Receipt>[] {
  return [
    { title: 'Number', value: ({ seq }) => seq, align: 'right', width: 90 },
    { title: 'Time', value: ({ decidedAtMs }) => decidedAtMs, format: dateTime, width: 200 },
    { title: 'Server', value: ({ serverId }) => serverId },
    { title: 'Rule', value: ({ decision }) => formatRule(decision) },
    { title: 'Policy', value: ({ decision }) => decision.policy },
    { title: 'In flight after', value: ({ decision }) => decision.inflight, align: 'right' },
    { title: 'Servers with room', value: ({ decision }) => decision.eligible, align: 'right' },
    {
      title: 'Receipt',
      cell: (receipt) => (
        <Button size="compact-xs" variant="default" onClick={() => open(receipt)}>
          Show
        </Button>
      ),
    },
  ];
}

function formatRule({ branch, via }: Receipt['decision']): string {
  return via === undefined ? branch : `${branch}, then ${via}`;
}

function ReceiptView({ receipt: { acquireId, serverId, decision } }: { receipt: Receipt }) {
  const { best = [], snapshot, policyVersion, key } = decision;
  return (
    <Stack>
      <Text size="sm">
        <Text span fw={600}>
          {serverId}
        </Text>{' '}
        was chosen by the rule {formatRule(decision)} of {decision.policy}
        {policyVersion === undefined ? '' : `, version ${policyVersion} of the settings`}
        {key === undefined ? '' : `, with the load key ${key}`}.
      </Text>
      <Text size="xs" c="dimmed">
        Acquire {acquireId}
      </Text>
      {best.length > 0 && (
        <Table captionSide="top" withTableBorder>
          <Table.Caption>The best servers for the policy before the choice</Table.Caption>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Server</Table.Th>
              <Table.Th>Load key</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {best.map((one) => (
              <Table.Tr key={one.serverId}>
                <Table.Td>{one.serverId}</Table.Td>
                <Table.Td>{one.key}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {snapshot !== undefined && (
        <ScrollArea.Autosize mah={480}>
          <Code block>{JSON.stringify(snapshot, null, 2)}</Code>
        </ScrollArea.Autosize>
      )}
    </Stack>
  );
}
