import { readData } from '@broomwagon/admin-client';
import { Group } from '@mantine/core';
import { ActionButton } from '../../actions/action-button';
import { StoppedWork } from '../../actions/stopped-work';
import { plainId } from '../../components/format';
import type { Server } from '../../live/read-servers';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';
import { DrainAction } from './drain-action';

interface ServerActionsProps {
  server: Server;
  onDone(): void;
}

/** All actions of an operator on one server. */
export function ServerActions({ server, onDone }: ServerActionsProps) {
  return (
    <Group gap="xs">
      <DrainAction server={server} onDone={onDone} />
      {server.state !== 'draining' && <CordonAction server={server} onDone={onDone} />}
      <ReconcileAction server={server} onDone={onDone} />
      <QuarantineAction server={server} onDone={onDone} />
      <RemoveAction server={server} onDone={onDone} />
    </Group>
  );
}

const SERVER = '/api/v1/pools/{pool}/servers/{serverId}';

/** Builds the parameters of a change of the server. */
function useParams({ serverId }: Server) {
  const { client } = useSession();
  const { pool } = useScope();
  return {
    client,
    build: (key: string) => ({ path: { pool, serverId }, header: { 'Idempotency-Key': key } }),
  };
}

function CordonAction({ server, onDone }: ServerActionsProps) {
  const { client, build } = useParams(server);
  const isEnd = server.state === 'cordoned';
  const label = isEnd ? 'Uncordon' : 'Cordon';
  return (
    <ActionButton
      key={label}
      label={label}
      title={`${label} ${plainId(server.serverId)}?`}
      about={
        isEnd
          ? 'The server takes new requests again.'
          : 'The server takes no new requests until it is uncordoned, also after a restart. Requests that run continue.'
      }
      run={async (key) => {
        const params = build(key);
        await (isEnd
          ? readData(client.POST(`${SERVER}/uncordon`, { params }))
          : readData(client.POST(`${SERVER}/cordon`, { params })));
        return `${server.serverId} ${isEnd ? 'takes new requests' : 'is cordoned'}.`;
      }}
      onDone={onDone}
    />
  );
}

function ReconcileAction({ server, onDone }: ServerActionsProps) {
  const { client, build } = useParams(server);
  return (
    <ActionButton
      label="Reconcile"
      title={`Reconcile ${plainId(server.serverId)}?`}
      about="Workers prove their leases on the server, and leases that nobody holds are returned. No request is stopped."
      run={async (key) => {
        const { leases, drift } = await readData(client.POST(`${SERVER}/reconcile`, { params: build(key), body: {} }));
        const difference = drift === undefined ? 'the engine reports no load' : `${drift} more than the engine runs`;
        return `${server.serverId} has ${leases} leases: ${difference}.`;
      }}
      onDone={onDone}
    />
  );
}

function QuarantineAction({ server, onDone }: ServerActionsProps) {
  const { client, build } = useParams(server);
  return (
    <ActionButton
      label="Quarantine"
      title={`Quarantine ${plainId(server.serverId)}?`}
      about="The server stops at once and stays registered, so that its engine can be examined. Its requests continue on other servers with the tokens that were saved. It is failed until the engine restarts, then cordoned."
      isDangerous
      run={async (key) => {
        await readData(client.POST(`${SERVER}/quarantine`, { params: build(key), body: {} }));
        return `${server.serverId} is quarantined.`;
      }}
      onDone={onDone}
    >
      <StoppedWork of={{ serverId: server.serverId }} verb="interrupts" />
    </ActionButton>
  );
}

function RemoveAction({ server, onDone }: ServerActionsProps) {
  const { client, build } = useParams(server);
  return (
    <ActionButton
      label="Remove"
      title={`Remove ${plainId(server.serverId)}?`}
      about="The registration is deleted, and the leases expire at once. The requests continue on other servers with the tokens that were saved. Drain the server first if it may end in peace."
      isDangerous
      run={async (key) => {
        await readData(client.DELETE(SERVER, { params: build(key) }));
        return `${server.serverId} is removed.`;
      }}
      onDone={onDone}
    >
      <StoppedWork of={{ serverId: server.serverId }} verb="interrupts" />
    </ActionButton>
  );
}
