import { readData } from '@broomwagon/admin-client';
import { Group, Select, Stack, Text } from '@mantine/core';
import { Problem } from '../../components/problem';
import { clock } from '../../components/format';
import { Section } from '../../components/stat';
import { nowMs } from '../../live/server-clock';
import { useLive } from '../../live/use-live';
import { useRounds } from '../use-rounds';
import { useSession } from '../../session/session';
import { setParameters, useRoute } from '../../shell/route';
import { useJob } from '../../shell/scope';
import { AbortAction } from './abort-action';
import { LengthChart } from './length-chart';
import { RequestStates } from './request-states';
import { RequestTable } from './request-table';
import { RoundProgress } from './round-progress';
import { RoundStats } from './round-stats';

export default function RoundPage() {
  const { client } = useSession();
  const path = useJob();
  const { pool, job } = path;
  const given = useRoute().parameters.get('round');
  const rounds = useRounds();
  const all = rounds.value ?? [];
  const roundId = given ?? all[0]?.roundId;
  const inRound = { path: { ...path, roundId: roundId ?? '' } };
  const live = useLive(
    roundId === undefined ? undefined : `${pool}/${job}/${roundId}`,
    async (signal) => {
      const [round, ledger, status] = await Promise.all([
        readData(client.GET('/api/v1/pools/{pool}/jobs/{job}/rounds/{roundId}', { params: inRound, signal })),
        readData(client.GET('/api/v1/pools/{pool}/jobs/{job}/rounds/{roundId}/ledger', { params: inRound, signal })),
        readData(client.GET('/api/v1/pools/{pool}/jobs/{job}', { params: { path }, signal })),
      ]);
      return { round, ledger, status, atMs: nowMs() };
    },
    { everyMs: 2_000, after: ['round.completed', 'round.settled', 'round.closed'] },
  );
  const { value } = live;
  return (
    <Stack gap="md">
      <Problem error={rounds.error ?? live.error} />
      {rounds.value !== undefined && all.length === 0 && <Text>This job has no round yet.</Text>}
      <Group justify="space-between">
        <Select
          aria-label="Round"
          size="xs"
          w={300}
          data={all.map((one) => ({
            value: one.roundId,
            label: `Step ${one.step}, ${one.kind}, ${one.state}, ${clock(one.openedAtMs)}`,
          }))}
          value={roundId ?? null}
          placeholder="the last round"
          onChange={(next) => setParameters({ round: next ?? undefined })}
          clearable={given !== null}
        />
        {value && <AbortAction job={job} roundId={value.round.roundId} onDone={live.refresh} />}
      </Group>
      {value && (
        <>
          <RoundProgress round={value.round} rounds={all} nowMs={value.atMs} />
          <RoundStats round={value.round} />
          <Section title="Lengths of the samples so far">
            <LengthChart lengths={value.ledger.summary.lengths} />
          </Section>
          <Section title="Requests of the job by state">
            <RequestStates requests={value.status.requests} />
          </Section>
          <Section title="Requests of the round that have not ended">
            <RequestTable job={job} roundId={value.round.roundId} />
          </Section>
        </>
      )}
    </Stack>
  );
}
