import { dataOf } from '@broomwagon/admin-client';
import { NumberInput } from '@mantine/core';
import { useState } from 'react';
import { ActionButton } from '../../actions/action-button';
import type { Server } from '../../live/read-servers';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';

/** Drains a server, or ends its drain or cordon. */
export function DrainAction({ server, onDone }: { server: Server; onDone(): void }) {
  const { client } = useSession();
  const { pool } = useScope();
  const [minutes, setMinutes] = useState<number | string>(10);
  const { serverId, state } = server;
  const params = (key: string) => ({ path: { pool, serverId }, header: { 'Idempotency-Key': key } });
  if (state === 'draining' || state === 'cordoned') {
    return (
      <ActionButton
        key="undrain"
        label="Undrain"
        title={`Undrain ${serverId}?`}
        about="The server takes new requests again, and it is not removed."
        run={async (key) => {
          await dataOf(client.POST('/api/v1/pools/{pool}/servers/{serverId}/undrain', { params: params(key) }));
          return `${serverId} takes new requests.`;
        }}
        onDone={onDone}
      />
    );
  }
  return (
    <ActionButton
      key="drain"
      label="Drain"
      title={`Drain ${serverId}?`}
      about="The server takes no new requests. It is removed with its last request, or at the deadline: then the requests that still run are moved to other servers."
      isDangerous
      run={async (key) => {
        const body = { deadlineMs: Number(minutes) * 60_000 };
        await dataOf(client.POST('/api/v1/pools/{pool}/servers/{serverId}/drain', { params: params(key), body }));
        return `${serverId} is draining.`;
      }}
      onDone={onDone}
    >
      <NumberInput label="Deadline, minutes" min={0} max={10_080} value={minutes} onChange={setMinutes} required />
    </ActionButton>
  );
}
