import { Anchor, Badge, Group, Text, Box } from '@mantine/core';
import { useMemo } from 'react';
import { type Column, DataTable } from '../../components/data-table';
import { duration, percent } from '../../components/format';
import type { Server } from '../../live/read-servers';
import { DrainAction } from './drain-action';
import { describeState, isBroken, toShownState } from './server-state';

const COLORS: Partial<Record<ReturnType<typeof toShownState>, string>> = {
  ready: 'green',
  pending: 'blue',
  draining: 'orange',
  cordoned: 'orange',
  suspect: 'red',
  failed: 'red',
  quarantined: 'red',
  hung: 'red',
};

interface ServerTableProps {
  servers: readonly Server[];
  /** Id of the server that the page shows. */
  chosen: string;
  onChoose(serverId: string): void;
  onChange(): void;
}

export function ServerTable({ servers, chosen, onChoose, onChange }: ServerTableProps) {
  const columns = useMemo<Column<Server>[]>(
    () => [
      {
        title: 'Server',
        cell: (server) => (
          <Anchor component="button" size="sm" title={server.endpoint} onClick={() => onChoose(server.serverId)}>
            {server.serverId}
          </Anchor>
        ),
        value: (server) => server.serverId,
      },
      {
        title: 'State',
        cell: (server) => (
          <Badge variant="light" size="sm" miw="max-content" color={COLORS[toShownState(server)] ?? 'gray'}>
            {toShownState(server)}
          </Badge>
        ),
        value: toShownState,
      },
      {
        title: 'Reason and next step',
        value: (server) => (isBroken(server) ? describeState(server).next : undefined),
        cell: (server) =>
          isBroken(server) ? (
            <Text size="xs" truncate maw={320} title={`${describeState(server).reason} ${describeState(server).next}`}>
              {describeState(server).next}
            </Text>
          ) : (
            '–'
          ),
      },
      {
        title: 'In flight',
        cell: ({ inflight, capacity }) => (
          <Meter share={inflight / Math.max(1, capacity)} text={`${inflight} of ${capacity}`} />
        ),
        value: (server) => server.inflight,
      },
      {
        title: 'KV cache',
        value: ({ load }) => load?.kvUse,
        cell: ({ load }) =>
          load?.kvUse === undefined ? <Absent /> : <Meter share={load.kvUse} text={percent(load.kvUse)} width={70} />,
      },
      {
        title: 'Engine queue',
        value: ({ load }) => load?.waiting,
        cell: ({ load }) => load?.waiting ?? <Absent />,
        align: 'right',
      },
      { title: 'Weights', value: (server) => server.weightVersion, cell: formatWeights, align: 'right' },
      {
        title: 'Stream interval',
        value: ({ capabilities }) => Number(capabilities?.streamInterval ?? -1),
        cell: (server) => <Interval server={server} />,
      },
      {
        title: 'Last answer',
        value: (server) => server.heartbeatAgeMs,
        cell: (server) => (server.probe === false ? 'not probed' : `${duration(server.heartbeatAgeMs)} ago`),
        align: 'right',
      },
      {
        title: 'Actions',
        cell: (server) => (
          <Group gap={4} wrap="nowrap">
            <DrainAction server={server} onDone={onChange} />
          </Group>
        ),
      },
    ],
    [onChange, onChoose],
  );
  return (
    <DataTable
      label="Servers"
      columns={columns}
      rows={servers}
      toKey={(server) => server.serverId}
      marked={chosen}
      empty="No server matches."
    />
  );
}

function formatWeights({ weightVersion, engineWeightVersion }: Server): string {
  const isOther =
    engineWeightVersion !== undefined && engineWeightVersion >= 0 && engineWeightVersion !== weightVersion;
  return isOther ? `${weightVersion} (engine ${engineWeightVersion})` : String(weightVersion);
}

/**
 * Whether the engine takes `stream_interval`, and the tokens of its events if they are not as asked. Without it, each
 * token costs an event.
 */
function Interval({ server: { capabilities, observedStreamInterval } }: { server: Server }) {
  const isTaken = capabilities?.streamInterval;
  if (isTaken === undefined && observedStreamInterval === undefined) return <Absent />;
  if (isTaken === true && observedStreamInterval === undefined) return 'taken';
  return (
    <Text span size="xs" c="orange" title="See docs/engines.md, events of several tokens">
      {observedStreamInterval === undefined ? 'not taken' : `not as asked: ${observedStreamInterval}`}
    </Text>
  );
}

function Absent() {
  return (
    <Text span c="dimmed" size="xs">
      not reported
    </Text>
  );
}

/** A bar with its value as text. Its color changes at 70 % and 90 %. */
function Meter({ share, text, width = 120 }: { share: number; text: string; width?: number }) {
  const filled = Math.min(1, Math.max(0, share));
  const color = filled >= 0.9 ? 'var(--bad)' : filled >= 0.7 ? 'var(--warn)' : 'var(--bar)';
  return (
    <Group gap="xs" wrap="nowrap">
      <Box w={width} h={8} bg="var(--track)" style={{ borderRadius: 4, overflow: 'hidden' }} aria-hidden="true">
        <Box h="100%" w={`${filled * 100}%`} bg={color} />
      </Box>
      <Text span size="xs">
        {text}
      </Text>
    </Group>
  );
}
