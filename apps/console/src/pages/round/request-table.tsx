import { readData, type Schemas } from '@broomwagon/admin-client';
import { Select, Stack, Text } from '@mantine/core';
import { useMemo } from 'react';
import { type Column, DataTable } from '../../components/data-table';
import { count, duration } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useParameter } from '../../address/route';
import { useScope } from '../../shell/scope';
import { AbortRequestAction } from './abort-action';

type Request = Schemas['RequestStatus'];
const STATES = ['pending', 'claimed', 'running', 'cutting', 'unfinished'] as const;

/** Shows the first page of the requests of a round in one state. */
export function RequestTable({ job, roundId }: { job: string; roundId: string }) {
  const { client } = useSession();
  const { pool } = useScope();
  const [given, setState] = useParameter('state', 'running');
  const state = STATES.find((one) => one === given) ?? 'running';
  const query = { job, roundId, state };
  const requests = useLive(
    `${pool}/${job}/${roundId}/${state}`,
    (signal) => readData(client.GET('/api/v1/pools/{pool}/requests', { params: { path: { pool }, query }, signal })),
    { everyMs: 5_000 },
  );
  const { refresh } = requests;
  const columns = useMemo<Column<Request>[]>(
    () => [
      { title: 'Request', value: ({ requestId }) => requestId },
      { title: 'Age', value: ({ ageMs }) => ageMs, format: duration, align: 'right' },
      { title: 'Tokens', value: ({ tokenCount }) => tokenCount, format: count, align: 'right' },
      { title: 'Server', value: ({ serverId }) => serverId },
      { title: 'Worker', value: ({ workerId }) => workerId },
      { title: 'Failures', value: ({ failures }) => failures, align: 'right' },
      {
        title: 'Actions',
        cell: ({ requestId, tokenCount }) => (
          <AbortRequestAction requestId={requestId} tokens={tokenCount} onDone={refresh} />
        ),
      },
    ],
    [refresh],
  );
  return (
    <Stack gap="xs">
      <Select
        size="xs"
        w={160}
        aria-label="State of the requests"
        data={STATES}
        value={state}
        allowDeselect={false}
        onChange={(next) => setState(next!)}
      />
      <LiveData live={requests} what="the requests">
        {(value) => (
          <>
            <DataTable
              label={`Requests in the state ${state}`}
              columns={columns}
              rows={value.requests}
              toKey={({ requestId }) => requestId}
              empty={`No request is ${state}.`}
              height={320}
            />
            {value.cursor !== undefined && (
              <Text size="xs" c="dimmed">
                These are the first {value.requests.length}; the page Timeline shows all requests of a round.
              </Text>
            )}
          </>
        )}
      </LiveData>
    </Stack>
  );
}
