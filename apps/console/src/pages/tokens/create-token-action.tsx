import { readData, type Schemas } from '@broomwagon/admin-client';
import { NumberInput, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { ActionButton } from '../../actions/action-button';
import { useSession } from '../../session/session';

type Created = Schemas['CreateTokenReply'];

const ROLES: readonly Created['role'][] = ['client', 'trainer', 'viewer', 'operator', 'admin'];
const DAY_MS = 86_400_000;

/** Creates a token. Its secret is in this one reply. */
export function CreateTokenAction({ onCreated }: { onCreated(token: Created): void }) {
  const { client } = useSession();
  const [name, setName] = useState('');
  const [role, setRole] = useState<Created['role']>('viewer');
  const [pools, setPools] = useState('');
  const [days, setDays] = useState<number | string>(30);
  const run = async () => {
    const names = pools.split(/[\s,]+/).filter((one) => one !== '');
    const body = {
      name,
      role,
      ...(names.length === 0 ? {} : { pools: names }),
      ...(days === '' ? {} : { expiresInMs: Math.round(Number(days) * DAY_MS) }),
    };
    const created = await readData(client.POST('/api/v1/tokens', { body }));
    onCreated(created);
    return `The token ${created.name} is created.`;
  };
  return (
    <div>
      <ActionButton
        label="Create a token"
        title="Create a token?"
        about="Whoever has the token has the rights of its role. The next page shows it once."
        role="admin"
        run={run}
      >
        <TextInput label="Name" value={name} onChange={(event) => setName(event.currentTarget.value)} required />
        <Select
          label="Role"
          data={ROLES}
          value={role}
          allowDeselect={false}
          onChange={(next) => setRole(next as Created['role'])}
        />
        <TextInput
          label="Pools"
          description="Names with commas between them. Empty: all pools."
          value={pools}
          onChange={(event) => setPools(event.currentTarget.value)}
        />
        <NumberInput
          label="Days until it expires"
          description="Empty: the token never expires."
          min={1}
          max={3_650}
          value={days}
          onChange={setDays}
        />
      </ActionButton>
    </div>
  );
}
