import { Anchor, Stack, Text } from '@mantine/core';
import type { Schemas } from '@broomwagon/admin-client';
import { buildHref } from '../../address/route';
import { type Column, DataTable } from '../../components/data-table';
import { count, duration } from '../../components/format';
import { Section } from '../../components/stat';
import { AlarmList } from '../overview/alarm-list';
import { RoundEnd } from '../round/round-end';
import type { Explanation } from '../use-explanation';

type Request = Schemas['AwaitedRequest'];

const COLUMNS: Column<Request>[] = [
  { title: 'Request', value: ({ requestId }) => requestId },
  { title: 'State', value: ({ state }) => state },
  { title: 'Age', value: ({ ageMs }) => ageMs, format: duration, align: 'right' },
  {
    title: 'Tokens',
    value: ({ tokenCount }) => tokenCount,
    cell: ({ tokenCount, maxTokens }) =>
      maxTokens === undefined ? count(tokenCount) : `${count(tokenCount)} of ${count(maxTokens)}`,
    align: 'right',
  },
  { title: 'Tokens/s', value: ({ tokensPerSecond }) => tokensPerSecond, align: 'right' },
  {
    title: 'Server',
    value: ({ serverId }) => serverId,
    cell: ({ serverId }) =>
      serverId === undefined ? (
        '–'
      ) : (
        <Anchor href={buildHref('fleet', { server: serverId })} inherit>
          {serverId}
        </Anchor>
      ),
  },
  { title: 'Worker', value: ({ workerId }) => workerId },
  { title: 'Problem', value: ({ problem }) => problem },
];

/** What an open round waits for now: causes with runbook and advice, its end, and the requests that it waits for. */
export function RoundWait({ explanation, onDone }: { explanation: Explanation; onDone(): void }) {
  const { waitsFor, causes, requests, places, usedPlaces, ageMs, medianMs, unread } = explanation;
  const age = ageMs === undefined ? '' : `: ${duration(ageMs)} so far`;
  return (
    <Section title={`What it waits for now${age}`}>
      <Stack gap="xs">
        <Text fw={600}>{waitsFor}</Text>
        {medianMs !== undefined && (
          <Text size="sm">Earlier rounds of its kind took {duration(medianMs)} (median).</Text>
        )}
        {places !== undefined && usedPlaces !== undefined && (
          <Text size="sm">
            Ready servers run {count(usedPlaces)} of {count(places)} requests that they may run together.
          </Text>
        )}
        <RoundEnd explanation={explanation} />
        {unread.map(({ part, code, reason }) => (
          <Text key={part} size="sm" c="var(--bad)">
            No answer about {part}: {code}. {reason}
          </Text>
        ))}
        <AlarmList alarms={causes} onDone={onDone} />
        {requests !== undefined && (
          <DataTable
            label="Requests that the round waits for"
            columns={COLUMNS}
            rows={requests}
            toKey={({ requestId }) => requestId}
            sortName="waits"
            empty="No request of the round runs or waits."
            height={320}
          />
        )}
      </Stack>
    </Section>
  );
}
