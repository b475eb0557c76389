import { readData, type Schemas } from '@broomwagon/admin-client';
import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { useEffect, useRef } from 'react';
import { type Column, DataTable } from '../../components/data-table';
import { duration } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { Section } from '../../components/stat';
import type { Server } from '../../live/read-servers';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';
import { ServerActions } from './server-actions';
import { describeState, toShownState } from './server-state';

interface ServerPanelProps {
  serverId: string;
  /** The server of the panel; absent if the pool does not have it. */
  server?: Server;
  onChange(): void;
  onClose(): void;
}

/** One server: reason of its state, next step, actions, and running requests. */
export function ServerPanel({ serverId, server, onChange, onClose }: ServerPanelProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    box.current?.scrollIntoView({ block: 'nearest' });
    box.current?.focus();
  }, [serverId]);
  const close = (
    <Button size="compact-xs" variant="default" onClick={onClose}>
      Close
    </Button>
  );
  return (
    <div ref={box} tabIndex={-1}>
      <Section title={`Server ${serverId}`} aside={close}>
        {server === undefined ? (
          <Text>The pool has no server {serverId} (any more): it was removed, or the address is wrong.</Text>
        ) : (
          <Details server={server} onChange={onChange} />
        )}
      </Section>
    </div>
  );
}

function Details({ server, onChange }: { server: Server; onChange(): void }) {
  const { reason, next } = describeState(server);
  const { endpoint, dialect, model, heartbeatAgeMs, probe } = server;
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <Badge variant="light">{toShownState(server)}</Badge>
        <Text size="sm">{reason}</Text>
      </Group>
      <Text size="sm">
        <Text span fw={600} inherit>
          Next:
        </Text>{' '}
        {next}
      </Text>
      <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
        {endpoint}, {dialect}
        {model === undefined ? '' : `, ${model}`}
        {probe === false ? ', not probed' : `, last answer ${duration(heartbeatAgeMs)} ago`}
      </Text>
      <ServerActions server={server} onDone={onChange} />
      <Leases serverId={server.serverId} />
    </Stack>
  );
}

type Lease = Schemas['LeaseStatus'];
const LEASES: Column<Lease>[] = [
  { title: 'Request', value: ({ requestId }) => requestId },
  { title: 'Age', value: ({ ageMs }) => ageMs, format: duration, align: 'right' },
  { title: 'Worker', value: ({ workerId }) => workerId },
  { title: 'Session', value: ({ sessionId }) => sessionId },
];

/** The first page of what runs on a server. */
function Leases({ serverId }: { serverId: string }) {
  const { client } = useSession();
  const { pool } = useScope();
  const leases = useLive(`${pool}/${serverId}/leases`, (signal) =>
    readData(client.GET('/api/v1/pools/{pool}/leases', { params: { path: { pool }, query: { serverId } }, signal })),
  );
  return (
    <LiveData live={leases} what="the requests on the server">
      {(value) => (
        <>
          <DataTable
            label={`Requests on ${serverId}`}
            columns={LEASES}
            rows={value.leases}
            toKey={({ leaseId }) => leaseId}
            empty="No request runs on this server."
            height={220}
          />
          {value.cursor !== undefined && (
            <Text size="xs" c="dimmed">
              These are the first {value.leases.length}.
            </Text>
          )}
        </>
      )}
    </LiveData>
  );
}
