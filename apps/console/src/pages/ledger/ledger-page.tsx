import { readData, type Schemas } from '@broomwagon/admin-client';
import { Alert, SimpleGrid, Stack, Text } from '@mantine/core';
import { useRef } from 'react';
import { Chart } from '../../components/chart';
import { compact, percent } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { Section, Stat, Stats } from '../../components/stat';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useJob, useScope } from '../../shell/scope';
import { PoolLedger } from './pool-ledger';
import { boundText, StepLedgers, type Step } from './step-ledgers';

/** Ledger of a job and of its last steps, with the steps of the job that waits for every sample, if there is one. */
interface Ledgers extends Pick<Schemas['JobLedgerReply'], 'summary' | 'alarms'> {
  steps: readonly Step[];
  ofWait?: readonly Step[];
}

export default function LedgerPage() {
  const { client } = useSession();
  const { pool, job } = useJob();
  const { jobs } = useScope();
  const baseline = jobs.value?.all.find((one) => one === `${job}-wait`);
  const ledgers = useRef<StepLedgers>(null);
  ledgers.current ??= new StepLedgers(client, pool);
  const ledger = useLive<Ledgers>(
    `${pool}/${job}/ledger`,
    async (signal) => {
      const params = { path: { pool, job } };
      const [total, steps, ofWait] = await Promise.all([
        readData(client.GET('/api/v1/pools/{pool}/jobs/{job}/ledger', { params, signal })),
        ledgers.current!.read(job, signal),
        baseline === undefined ? undefined : ledgers.current!.read(baseline, signal),
      ]);
      return { ...total, steps, ofWait };
    },
    { everyMs: 15_000, after: ['round.completed', 'round.closed'] },
  );
  return (
    <LiveData live={ledger} what="the ledger">
      {(value) => <Ledger {...value} job={job} hasOtherJobs={jobs.value !== undefined && jobs.value.all.length > 1} />}
    </LiveData>
  );
}

function Ledger({
  summary,
  alarms,
  steps,
  ofWait,
  job,
  hasOtherJobs,
}: Ledgers & { job: string; hasOtherJobs: boolean }) {
  const x = steps.map(({ step }) => step);
  const share = (label: string, color: 'bar' | 'warn' | 'bad', read: (step: Step) => number) => (
    <Chart
      label={label}
      x={x}
      lines={[{ label, values: steps.map(read), color }]}
      formatY={(one) => percent(one, 1)}
      include={[0, 0.05]}
    />
  );
  return (
    <Stack gap="md">
      {alarms.map(({ bound, value, limit, state }) => (
        <Alert key={bound} color={state === 'over' ? 'red' : 'orange'} title={`${bound}: ${boundText(bound, value)}`}>
          {state === 'over' ? 'Above' : 'Near'} its bound of {boundText(bound, limit)}.
        </Alert>
      ))}
      <Stats>
        <Stat label="Samples trained" value={compact(summary.trained.samples)} />
        <Stat label="Length of trained / of all" value={percent(summary.lengthBias, 1)} detail="100 % = unbiased" />
        <Stat label="Off-policy tokens" value={percent(summary.offPolicyShare, 1)} />
        <Stat label="Tokens thrown away" value={percent(summary.waste.share, 1)} />
        <Stat label="Oldest weights in a sample" value={`${summary.versionSpan.max} versions`} />
        <Stat
          label="Cuts of a group"
          value={summary.cutsPerGroup.mean.toFixed(2)}
          detail={`at most ${summary.cutsPerGroup.max}`}
        />
      </Stats>
      {steps.length === 0 && <Text>No round of this job is completed yet.</Text>}
      {steps.length > 0 && (
        <SimpleGrid cols={{ base: 1, md: 2 }}>
          <Section title="Bias so far: mean length of trained / of all samples - 1">
            {share('Bias of the length', 'bar', ({ biasSoFar }) => biasSoFar - 1)}
            <Text size="xs" c="dimmed">
              Each point compares the samples trained until then with all samples started until then: it returns to 0
              when long samples that were cut are trained in a later step, and stays below 0 if they are lost.
            </Text>
          </Section>
          <Section title="Trained tokens of older weights">
            {share('Off-policy share', 'warn', ({ ledger }) => ledger.offPolicyShare)}
          </Section>
          <Section title="Tokens thrown away">{share('Waste', 'bad', ({ ledger }) => ledger.waste.share)}</Section>
          <Section
            title={`Time of a step${ofWait ? ' against the policy wait' : ''}`}
            aside={<Speed steps={steps} ofWait={ofWait} />}
          >
            <Chart
              label="Seconds from the opening of a round to its last group"
              x={x}
              lines={[
                { label: job, values: steps.map(({ seconds }) => seconds), color: 'bar' },
                ...(ofWait === undefined
                  ? []
                  : [
                      {
                        label: 'wait',
                        values: x.map((step) => ofWait.find((one) => one.step === step)?.seconds ?? null),
                        color: 'warn' as const,
                      },
                    ]),
              ]}
              formatY={(seconds) => `${compact(seconds)} s`}
            />
          </Section>
        </SimpleGrid>
      )}
      {hasOtherJobs && <PoolLedger />}
      <Text size="xs" c="dimmed">
        The charts show the steps that the API still has: the last 16 rounds. The numbers are of all steps of the job.
      </Text>
    </Stack>
  );
}

/** Shows how much faster the steps are than the same steps of the baseline. */
function Speed({ steps, ofWait }: { steps: readonly Step[]; ofWait?: readonly Step[] }) {
  const pairs = steps.flatMap(({ step, seconds }) => {
    const other = ofWait?.find((one) => one.step === step);
    return other === undefined ? [] : [{ seconds, ofWait: other.seconds }];
  });
  if (pairs.length === 0) return null;
  const sum = (read: (pair: (typeof pairs)[0]) => number) => pairs.reduce((total, pair) => total + read(pair), 0);
  const speed = sum((pair) => pair.ofWait) / sum((pair) => pair.seconds);
  return (
    <Text size="sm" fw={600}>
      {speed.toFixed(2)} × as fast
    </Text>
  );
}
