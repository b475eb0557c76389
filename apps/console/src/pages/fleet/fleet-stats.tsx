import type { Schemas } from '@broomwagon/admin-client';
import { Badge } from '@mantine/core';
import { count } from '../../components/format';
import { Stat, Stats } from '../../components/stat';
import type { Server } from '../../live/read-servers';

export function FleetStats({
  servers,
  status,
}: {
  servers: readonly Server[];
  status?: Schemas['LoadBalancerStatus'];
}) {
  const capacity = servers.reduce((sum, server) => sum + (server.state === 'ready' ? server.capacity : 0), 0);
  const versions = new Set(servers.map((server) => server.weightVersion));
  const newest = Math.max(...versions);
  const older = servers.filter((server) => server.weightVersion !== newest).length;
  return (
    <Stats>
      <Stat
        label="Servers ready"
        value={count(status?.readyServers ?? 0)}
        detail={`of ${count(status?.servers ?? 0)}`}
      />
      <Stat label="Requests in flight" value={count(status?.leases ?? 0)} detail={`of ${count(capacity)}`} />
      <Stat label="Waiting for a server" value={count(status?.waiters ?? 0)} />
      <Stat label="Workers" value={count(status?.workers ?? 0)} />
      <Stat label="Sessions" value={count(status?.sessions ?? 0)} />
      <Stat
        label="Weight version"
        value={versions.size === 0 ? '–' : newest}
        detail={older > 0 ? `${count(older)} older` : 'all servers'}
      />
      <Stat
        label="Pool"
        value={
          <Badge color={status?.paused ? 'orange' : 'green'} variant="light">
            {status?.paused ? 'paused' : 'running'}
          </Badge>
        }
      />
    </Stats>
  );
}
