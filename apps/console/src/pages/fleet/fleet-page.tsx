import { Group, Select, Stack, TextInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import { LiveData } from '../../components/live-data';
import { Section } from '../../components/stat';
import { readServers, type Server } from '../../live/read-servers';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';
import { FleetStats } from './fleet-stats';
import { LoadMap } from './load-map';
import { PauseAction } from './pause-action';
import { ServerTable } from './server-table';
import { ServiceReadiness } from './service-readiness';

export default function FleetPage() {
  const { client } = useSession();
  const { pool, status } = useScope();
  const servers = useLive(`${pool}/servers`, (signal) => readServers(client, pool, signal), {
    after: ['server.fenced', 'server.hung', 'weights.committed'],
  });
  return (
    <Stack gap="md">
      <ServiceReadiness />
      <Group justify="space-between" align="flex-end">
        <LiveData live={status} what="the pool">
          {(value) => <FleetStats servers={servers.value} status={value} />}
        </LiveData>
        <PauseAction />
      </Group>
      <LiveData live={servers} what="the servers">
        {(all) => <Servers all={all} onChange={servers.refresh} />}
      </LiveData>
    </Stack>
  );
}

function Servers({ all, onChange }: { all: readonly Server[]; onChange(): void }) {
  const [text, setText] = useState('');
  const [state, setState] = useState<string | null>(null);
  const states = [...new Set(all.map((server) => server.state))].toSorted((one, other) =>
    one.localeCompare(other, 'en'),
  );
  const shown = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    return all.filter(
      (server) =>
        (state === null || server.state === state) &&
        (wanted === '' || `${server.serverId} ${server.endpoint} ${server.model ?? ''}`.toLowerCase().includes(wanted)),
    );
  }, [all, text, state]);
  return (
    <>
      <Section title="Load">
        <LoadMap servers={all} />
      </Section>
      <Section
        title="Servers"
        aside={
          <Group gap="xs">
            <TextInput
              size="xs"
              aria-label="Filter servers by id, address or model"
              placeholder="id, address or model"
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
            />
            <Select
              size="xs"
              w={130}
              aria-label="Filter servers by state"
              placeholder="every state"
              data={states}
              value={state}
              onChange={setState}
              clearable
            />
          </Group>
        }
      >
        <ServerTable servers={shown} onChange={onChange} />
      </Section>
    </>
  );
}
