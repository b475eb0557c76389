import { readData, type Schemas } from '@broomwagon/admin-client';
import { Anchor } from '@mantine/core';
import { type Column, DataTable } from '../../components/data-table';
import { dateTime, duration } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { buildHref } from '../../address/route';
import { useJob } from '../../shell/scope';

type Round = Schemas['PastRound'];

const COLUMNS: Column<Round>[] = [
  {
    title: 'Step',
    value: ({ step }) => step,
    cell: ({ step, roundId }) => (
      <Anchor href={buildHref('round', { round: roundId })} inherit>
        {step}
      </Anchor>
    ),
    align: 'right',
    width: 80,
  },
  { title: 'Round', value: ({ roundId }) => roundId },
  { title: 'State', value: ({ state }) => state },
  { title: 'Kind', value: ({ kind }) => kind },
  { title: 'Opened', value: ({ openedAtMs }) => openedAtMs, format: dateTime },
  { title: 'Took', value: computeTook, format: duration, align: 'right' },
  { title: 'Groups accepted', value: ({ acceptedGroups }) => acceptedGroups, align: 'right' },
  { title: 'Groups needed', value: ({ neededGroups }) => neededGroups, align: 'right' },
];

function computeTook({ openedAtMs, completedAtMs }: Round): number | undefined {
  return openedAtMs === undefined || completedAtMs === undefined ? undefined : completedAtMs - openedAtMs;
}

/** All rounds of the job that the stream of events has: the services keep summaries of the last 16 only. */
export function PastRounds({ roundId }: { roundId?: string }) {
  const { client } = useSession();
  const path = useJob();
  const past = useLive(
    `${path.pool}/${path.job}/past-rounds`,
    (signal) => readData(client.GET('/api/v1/pools/{pool}/jobs/{job}/past-rounds', { params: { path }, signal })),
    { everyMs: 30_000, after: ['round.opened', 'round.completed'] },
  );
  return (
    <LiveData live={past} what="the rounds in the stream of events">
      {({ rounds }) => (
        <DataTable
          label="Rounds of the job, latest first"
          columns={COLUMNS}
          rows={rounds}
          toKey={(round) => round.roundId}
          marked={roundId}
          sortName="rounds"
          empty="The stream of events has no round of this job."
          height={300}
        />
      )}
    </LiveData>
  );
}
