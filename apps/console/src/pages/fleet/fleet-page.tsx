import { Group, Select, Stack, TextInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import { Problem } from '../../components/problem';
import { Section } from '../../components/stat';
import { readServers } from '../../live/read-servers';
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
  const all = useMemo(() => servers.value ?? [], [servers.value]);
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
    <Stack gap="md">
      <Problem error={servers.error ?? status.error} />
      <ServiceReadiness />
      <Group justify="space-between" align="flex-end">
        <FleetStats servers={all} status={status.value} />
        <PauseAction />
      </Group>
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
        <ServerTable servers={shown} isLoading={servers.value === undefined} onChange={servers.refresh} />
      </Section>
    </Stack>
  );
}
