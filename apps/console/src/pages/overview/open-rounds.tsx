import type { Schemas } from '@broomwagon/admin-client';
import { Anchor, Text } from '@mantine/core';
import { type Column, DataTable } from '../../components/data-table';
import { count, duration } from '../../components/format';
import { buildHref } from '../../address/route';
import { formatUnread, type Overview } from './format-unread';

type Round = Schemas['OpenRound'];

const COLUMNS: Column<Round>[] = [
  { title: 'Job', value: ({ job }) => job },
  {
    title: 'Step',
    value: ({ step }) => step,
    cell: ({ job, roundId, step }) => (
      <Anchor href={buildHref('round', { job, round: roundId })} inherit>
        {step}
      </Anchor>
    ),
    align: 'right',
  },
  { title: 'State', value: ({ state }) => state },
  {
    title: 'Groups',
    value: ({ acceptedGroups }) => acceptedGroups,
    cell: ({ acceptedGroups, neededGroups }) => `${count(acceptedGroups)} of ${count(neededGroups)}`,
    align: 'right',
  },
  { title: 'Age', value: ({ ageMs }) => ageMs, format: duration, align: 'right' },
  { title: 'Median step', value: ({ medianMs }) => medianMs, format: duration, align: 'right' },
  {
    title: 'Blocked',
    value: ({ blockedReason }) => blockedReason?.code,
    cell: ({ blockedReason }) => (
      <Text span size="xs" c={blockedReason && 'var(--bad)'} title={blockedReason?.message}>
        {blockedReason === undefined ? 'no' : blockedReason.code}
      </Text>
    ),
  },
  {
    title: 'Why slow',
    cell: ({ job, roundId }) => (
      <Anchor href={buildHref('timeline', { job, round: roundId })} inherit>
        Timeline
      </Anchor>
    ),
  },
];

/** The open round of each job, its age beside the median of earlier rounds, and why it is blocked. */
export function OpenRounds({ overview }: { overview: Overview }) {
  if (overview.rounds === undefined) return <Text size="sm">{formatUnread(overview, 'jobs')}</Text>;
  return (
    <DataTable
      label="Open rounds"
      columns={COLUMNS}
      rows={overview.rounds}
      toKey={({ job }) => job}
      empty="No job has an open round."
      height={280}
    />
  );
}
