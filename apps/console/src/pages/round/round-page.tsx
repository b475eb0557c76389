import { readData, type Schemas } from '@broomwagon/admin-client';
import { Group, Select, Stack } from '@mantine/core';
import { compact, count, dateTime } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { Section, Stat, Stats } from '../../components/stat';
import { nowMs } from '../../live/server-clock';
import { useLive } from '../../live/use-live';
import { useExplanation } from '../use-explanation';
import { isOpen, useRounds } from '../use-rounds';
import { useSession } from '../../session/session';
import { setParameters, useRoute } from '../../address/route';
import { useJob } from '../../shell/scope';
import { AbortAction } from './abort-action';
import { LengthChart } from './length-chart';
import { PastRounds } from './past-rounds';
import { RequestStates } from './request-states';
import { RequestTable } from './request-table';
import { RoundEnd } from './round-end';
import { RoundProgress } from './round-progress';

export default function RoundPage() {
  const { client } = useSession();
  const path = useJob();
  const { pool, job } = path;
  const given = useRoute().parameters.get('round');
  const rounds = useRounds();
  const roundId = given ?? rounds.value?.[0]?.roundId;
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
  const isRunning = live.value !== undefined && isOpen(live.value.round);
  const wait = useExplanation(isRunning ? roundId : undefined);
  return (
    <Stack gap="md">
      <LiveData
        live={rounds}
        what="the rounds of the job"
        isEmpty={(all) => all.length === 0}
        empty="This job has no round yet."
      >
        {(all) => (
          <Group justify="space-between">
            <Select
              aria-label="Round"
              size="xs"
              w={300}
              data={all.map((one) => ({
                value: one.roundId,
                label: `Step ${one.step}, ${one.kind}, ${one.state}, ${dateTime(one.openedAtMs)}`,
              }))}
              value={roundId ?? null}
              placeholder="the last round"
              onChange={(next) => setParameters({ round: next ?? undefined })}
              clearable={given !== null}
            />
            {live.value && <AbortAction job={job} roundId={live.value.round.roundId} onDone={live.refresh} />}
          </Group>
        )}
      </LiveData>
      {roundId !== undefined && (
        <LiveData live={live} what="the round">
          {(value) => (
            <>
              <RoundProgress round={value.round} nowMs={value.atMs}>
                {isRunning && (
                  <LiveData live={wait} what="what the round waits for">
                    {(explanation) => <RoundEnd explanation={explanation} />}
                  </LiveData>
                )}
              </RoundProgress>
              <RoundStats round={value.round} />
              <Section title="Lengths of the samples in tokens, of running ones so far">
                <LengthChart
                  lengths={value.ledger.summary.lengths}
                  running={isRunning ? wait.value?.runningLengths : undefined}
                />
              </Section>
              <Section title="Requests of the job by state">
                <RequestStates requests={value.status.requests} />
              </Section>
              <Section title="Requests of the round that have not ended">
                <RequestTable job={job} roundId={value.round.roundId} />
              </Section>
            </>
          )}
        </LiveData>
      )}
      <Section title="All rounds">
        <PastRounds roundId={roundId} />
      </Section>
    </Stack>
  );
}

function RoundStats({ round }: { round: Schemas['RoundStatus'] }) {
  const returned = Object.values(round.returnedAttempts).reduce((sum, one) => sum + one, 0);
  const lost = round.failedGroups + round.droppedGroups;
  return (
    <Stats>
      <Stat
        label="Groups launched"
        value={count(round.roundGroups)}
        detail={`${count(round.takenGroups)} from the queue`}
      />
      <Stat label="Samples done" value={count(round.requestsDone)} />
      <Stat label="Requests cut" value={count(round.requestsCut)} />
      <Stat label="Groups queued for later" value={count(round.groupsRequeued)} />
      <Stat label="Groups finished, no place" value={count(round.heldGroups)} />
      <Stat label="Groups lost" value={count(lost)} detail={lost > 0 ? 'failed or dropped' : undefined} />
      <Stat label="Attempts returned" value={count(returned)} />
      <Stat label="Tokens thrown away" value={compact(round.wastedTokens)} />
      <Stat label="Weight version" value={round.weightVersion} />
    </Stats>
  );
}
