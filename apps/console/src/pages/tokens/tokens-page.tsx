import { readData, type Schemas } from '@broomwagon/admin-client';
import { Alert, Code, Stack, Text } from '@mantine/core';
import { useMemo, useState } from 'react';
import { type Column, DataTable } from '../../components/data-table';
import { dateTime } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { CreateTokenAction } from './create-token-action';
import { RevokeTokenAction } from './revoke-token-action';

type Token = Schemas['TokenStatus'];

/** The tokens of the REST API and the gateway, without their secrets. */
export default function TokensPage() {
  const { client } = useSession();
  const [created, setCreated] = useState<Schemas['CreateTokenReply']>();
  const tokens = useLive('tokens', (signal) => readData(client.GET('/api/v1/tokens', { signal })), {
    everyMs: 10_000,
  });
  const { refresh } = tokens;
  const columns = useMemo<Column<Token>[]>(
    () => [
      { title: 'Name', value: ({ name }) => name },
      { title: 'Role', value: ({ role }) => role },
      { title: 'Pools', value: ({ pools }) => (pools === undefined ? 'all' : pools.join(', ')) },
      { title: 'Created', value: ({ createdAtMs }) => createdAtMs, format: dateTime },
      {
        title: 'Expires',
        value: ({ expiresAtMs }) => expiresAtMs,
        cell: ({ expiresAtMs }) => (expiresAtMs === undefined ? 'never' : dateTime(expiresAtMs)),
      },
      { title: 'Id', value: ({ tokenId }) => tokenId },
      { title: 'Actions', cell: (token) => <RevokeTokenAction token={token} onDone={refresh} /> },
    ],
    [refresh],
  );
  return (
    <Stack gap="md">
      <CreateTokenAction
        onCreated={(token) => {
          setCreated(token);
          refresh();
        }}
      />
      {created !== undefined && (
        <Alert
          color="green"
          title={`The token ${created.name} is shown only now`}
          withCloseButton
          closeButtonLabel="Forget the token"
          onClose={() => setCreated(undefined)}
        >
          <Code style={{ overflowWrap: 'anywhere' }}>{created.token}</Code>
        </Alert>
      )}
      <LiveData live={tokens} what="the tokens">
        {(value) => (
          <DataTable
            label="Tokens"
            columns={columns}
            rows={value.tokens}
            toKey={({ tokenId }) => tokenId}
            empty="There is no stored token."
          />
        )}
      </LiveData>
      <Text size="xs" c="dimmed">
        Tokens of ADMIN_TOKEN_SHA256 and of an OpenID Connect issuer are not stored, so this list does not have them.
      </Text>
    </Stack>
  );
}
