import type { Schemas } from '@broomwagon/admin-client';
import { Badge } from '@mantine/core';
import { count } from '../../components/format';
import { Stat, Stats } from '../../components/stat';
import type { Server } from '../../live/read-servers';

export function FleetStats({
  servers,
  status,
}: {
  /** Servers of the pool; absent while they are not known. */
  servers?: readonly Server[];
  status: Schemas['LoadBalancerStatus'];
}) {
  // The numbers of one reply agree with the table below.
  const ready = servers?.filter(({ state }) => state === 'ready').length;
  const inflight = servers?.reduce((sum, server) => sum + server.inflight, 0);
  const capacity = servers?.reduce((sum, server) => sum + (server.state === 'ready' ? server.capacity : 0), 0);
  return (
    <Stats>
      <Stat
        label="Servers ready"
        value={count(ready ?? status.readyServers)}
        detail={`of ${count(servers?.length ?? status.servers)}`}
      />
      <Stat
        label="Requests in flight"
        value={count(inflight ?? status.leases)}
        detail={capacity === undefined ? undefined : `of ${count(capacity)}`}
      />
      <Stat label="Waiting for a server" value={count(status.waiters)} />
      <Stat label="Workers" value={count(status.workers)} />
      <Stat label="Sessions" value={count(status.sessions)} />
      {servers !== undefined && servers.length > 0 && <Weights servers={servers} />}
      <Stat
        label="Pool"
        value={
          <Badge color={status.paused ? 'orange' : 'green'} variant="light">
            {status.paused ? 'paused' : 'running'}
          </Badge>
        }
      />
    </Stats>
  );
}

function Weights({ servers }: { servers: readonly Server[] }) {
  const newest = Math.max(...servers.map((server) => server.weightVersion));
  const older = servers.filter((server) => server.weightVersion !== newest).length;
  return <Stat label="Weight version" value={newest} detail={older > 0 ? `${count(older)} older` : 'all servers'} />;
}
