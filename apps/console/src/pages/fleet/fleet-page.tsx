import { Group, Select, Stack, TextInput } from '@mantine/core';
import { useMemo } from 'react';
import { LiveData } from '../../components/live-data';
import { Section } from '../../components/stat';
import { readServers, type Server } from '../../live/read-servers';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useParameter } from '../../address/route';
import { useScope } from '../../shell/scope';
import { FleetStats } from './fleet-stats';
import { LoadMap } from './load-map';
import { PauseAction } from './pause-action';
import { ServerPanel } from './server-panel';
import { sortByUrgency, toShownState } from './server-state';
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
  const [text, setText] = useParameter('text', '');
  const [state, setState] = useParameter('state', '');
  const [chosen, setChosen] = useParameter('server', '');
  const sorted = useMemo(() => sortByUrgency(all), [all]);
  const states = [...new Set(sorted.map(toShownState))];
  const shown = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    return sorted.filter(
      (server) =>
        (state === '' || toShownState(server) === state) &&
        (wanted === '' || `${server.serverId} ${server.endpoint} ${server.model ?? ''}`.toLowerCase().includes(wanted)),
    );
  }, [sorted, text, state]);
  return (
    <>
      <Section title="Load">
        <LoadMap servers={sorted} chosen={chosen} onChoose={setChosen} />
      </Section>
      {chosen !== '' && (
        <ServerPanel
          serverId={chosen}
          server={all.find(({ serverId }) => serverId === chosen)}
          onChange={onChange}
          onClose={() => setChosen('')}
        />
      )}
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
              data={[...new Set([...states, ...(state === '' ? [] : [state])])]}
              value={state === '' ? null : state}
              onChange={(next) => setState(next ?? '')}
              clearable
            />
          </Group>
        }
      >
        <ServerTable servers={shown} chosen={chosen} onChoose={setChosen} onChange={onChange} />
      </Section>
    </>
  );
}
