import { readData } from '@broomwagon/admin-client';
import { NumberInput } from '@mantine/core';
import { useState } from 'react';
import { ActionButton } from '../../actions/action-button';
import { StoppedWork } from '../../actions/stopped-work';
import { plainId } from '../../components/format';
import type { Server } from '../../live/read-servers';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';

export function DrainAction({ server, onDone }: { server: Server; onDone(): void }) {
  const { client } = useSession();
  const { pool } = useScope();
  const [minutes, setMinutes] = useState<number | string>(10);
  const { serverId, state } = server;
  const isEnd = state === 'draining' || state === 'cordoned';
  return (
    <ActionButton
      key={String(isEnd)}
      label={isEnd ? 'Undrain' : 'Drain'}
      title={`${isEnd ? 'Undrain' : 'Drain'} ${plainId(serverId)}?`}
      about={
        isEnd
          ? 'The server takes new requests again, and it is not removed.'
          : 'The server takes no new requests. It is removed with its last request, or at the deadline: then the requests that still run are moved to other servers.'
      }
      isDangerous={!isEnd}
      run={async (key) => {
        const params = { path: { pool, serverId }, header: { 'Idempotency-Key': key } };
        const address = '/api/v1/pools/{pool}/servers/{serverId}';
        const body = { deadlineMs: Number(minutes) * 60_000 };
        await (isEnd
          ? readData(client.POST(`${address}/undrain`, { params }))
          : readData(client.POST(`${address}/drain`, { params, body })));
        return isEnd ? `${serverId} takes new requests.` : `${serverId} is draining.`;
      }}
      onDone={onDone}
    >
      {!isEnd && (
        <>
          <NumberInput label="Deadline, minutes" min={0} max={10_080} value={minutes} onChange={setMinutes} required />
          <StoppedWork of={{ serverId }} verb="moves" />
        </>
      )}
    </ActionButton>
  );
}
