import { readData, type Schemas } from '@broomwagon/admin-client';
import { Button, Group, Stack, Text } from '@mantine/core';
import { useMemo, useRef } from 'react';
import { type Column, DataTable } from '../../components/data-table';
import { compact, count, duration, percent } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { saveFile } from '../../components/save-file';
import { Section } from '../../components/stat';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useJob } from '../../shell/scope';
import { type Point, toPoints } from './points';
import { type Axis, Scatter } from './scatter';

/** Interval of reads, milliseconds. A read keeps the server busy for up to a second. */
const EVERY_MS = 120_000;

const SPEED: Axis = {
  label: 'trained tokens in each second',
  of: ({ tokensPerSecond }) => tokensPerSecond,
  format: compact,
  include: 0,
};
const OFF_POLICY: Axis = {
  label: 'off-policy share of trained tokens',
  of: ({ offPolicyShare }) => offPolicyShare,
  format: (share) => percent(share),
  include: 0,
};
const BIAS: Axis = {
  label: 'mean length of trained / of admitted samples',
  of: ({ lengthBias }) => lengthBias,
  format: (bias) => bias.toFixed(2),
  include: 1,
};

const tenthsOfPercent = (share: number): string => percent(share, 1);
const COLUMNS: readonly Column<Point>[] = [
  { title: 'Point', value: ({ name, kind }) => (kind === 'own' ? `${name} (own)` : name) },
  { title: 'Step', value: (one) => 1_000 * one.stepSeconds, format: duration, align: 'right' },
  { title: 'Tokens/s', value: (one) => one.tokensPerSecond, format: compact, align: 'right' },
  { title: 'Off-policy', value: (one) => one.offPolicyShare, format: tenthsOfPercent, align: 'right' },
  { title: 'Bias', value: (one) => one.lengthBias, format: (bias) => bias.toFixed(3), align: 'right' },
  { title: 'Waste', value: (one) => one.wasteShare, format: tenthsOfPercent, align: 'right' },
];

/** Page of the speed and cost of the steps of a job, beside other policies on the same samples. */
export default function FrontierPage() {
  const { client } = useSession();
  const path = useJob();
  const { pool, job } = path;
  const frontier = useLive(
    `${pool}/${job}/frontier`,
    (signal) => readData(client.GET('/api/v1/pools/{pool}/jobs/{job}/frontier', { params: { path }, signal })),
    { everyMs: EVERY_MS, after: ['round.closed'] },
  );
  return (
    <Stack gap="md">
      <LiveData live={frontier} what="the costs of the steps">
        {(value) => <Frontier frontier={value} job={job} />}
      </LiveData>
    </Stack>
  );
}

function Frontier({ frontier, job }: { frontier: Schemas['JobFrontierReply']; job: string }) {
  const points = useMemo(() => toPoints(frontier), [frontier]);
  const offPolicy = useRef<SVGSVGElement>(null);
  const bias = useRef<SVGSVGElement>(null);
  const save = (): void => {
    saveFile(`frontier-${job}-off-policy.svg`, toSvgBlob(offPolicy.current!));
    saveFile(`frontier-${job}-bias.svg`, toSvgBlob(bias.current!));
  };
  return (
    <>
      <Section
        title="Speed against cost"
        aside={
          <Button.Group>
            <Button size="xs" variant="default" onClick={save}>
              SVG
            </Button>
            <Button
              size="xs"
              variant="default"
              onClick={() => saveFile(`frontier-${job}.json`, new Blob([JSON.stringify(frontier)]))}
            >
              JSON
            </Button>
          </Button.Group>
        }
      >
        <Text size="sm" mb="xs">
          {formatSummary(frontier, points)}
        </Text>
        <Group align="start" gap="lg">
          <Scatter title="Speed by off-policy share" points={points} x={OFF_POLICY} y={SPEED} ref={offPolicy} />
          <Scatter title="Speed by length bias" points={points} x={BIAS} y={SPEED} ref={bias} />
        </Group>
        <Text size="xs" c="dimmed">
          Circles: steps of the job. Squares: policies on the recorded samples, filled: the policy of the job. Named,
          where there is room: no other policy is better in every respect. The replay gives every launched sample a slot
          at once: on a full fleet it overrates policies that launch more.
        </Text>
      </Section>
      <Section title="All points">
        <DataTable
          label="Steps and policies"
          columns={COLUMNS}
          rows={points}
          toKey={({ name, kind }) => `${kind} ${name}`}
          empty="No step is trained yet."
        />
      </Section>
    </>
  );
}

function formatSummary(
  { steps, whatIf, recordedGroups, partialGroups }: Schemas['JobFrontierReply'],
  points: readonly Point[],
): string {
  if (steps.length === 0) return 'No step is trained yet.';
  const own = points.find(({ kind }) => kind === 'own');
  const wait = whatIf.find(({ policy }) => policy === 'wait');
  const left = partialGroups > 0 ? `, without ${count(partialGroups)} whose samples have not all ended` : '';
  if (own === undefined || wait === undefined) {
    return (
      `There is no replay: it needs two steps of recorded groups (${count(recordedGroups)} are recorded${left}) ` +
      'under a policy other than fixed-concurrency.'
    );
  }
  const speed = (wait.stepSeconds / own.stepSeconds).toFixed(2);
  return (
    `On ${count(recordedGroups)} recorded groups${left}, ${own.name} is ${speed} times as fast as waiting for every sample. ` +
    `It costs ${percent(own.offPolicyShare, 1)} off-policy tokens, a length bias of ${own.lengthBias.toFixed(3)}, ` +
    `and ${percent(own.wasteShare, 1)} of the tokens.`
  );
}

function toSvgBlob(drawing: SVGSVGElement): Blob {
  return new Blob([new XMLSerializer().serializeToString(drawing)], { type: 'image/svg+xml' });
}
