import { readData, iteratePages, type Schemas } from '@broomwagon/admin-client';
import { SimpleGrid, Stack, Text } from '@mantine/core';
import { useMemo } from 'react';
import { type Column, DataTable } from '../../components/data-table';
import { compact, count } from '../../components/format';
import { Histogram } from '../../components/histogram';
import { LiveData } from '../../components/live-data';
import { Section, Stat, Stats } from '../../components/stat';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useJob } from '../../shell/scope';
import { ExportQueue } from './export-queue';

type Group = Schemas['LongtailGroup'];

/** The queue of a job, as far as it is read, and the step that trains next. */
interface Queue {
  step: number;
  longtail: Schemas['JobStatus']['longtail'];
  groups: readonly Group[];
}

/** Maximum groups that are read. Of a longer queue only this part is shown. */
const MAX_GROUPS = 4_096;

export default function TailPage() {
  const { client } = useSession();
  const path = useJob();
  const { pool, job } = path;
  const queue = useLive<Queue>(
    `${pool}/${job}/longtail`,
    async (signal) => {
      const status = await readData(client.GET('/api/v1/pools/{pool}/jobs/{job}', { params: { path }, signal }));
      const groups: Group[] = [];
      const read = (cursor?: number) =>
        readData(
          client.GET('/api/v1/pools/{pool}/jobs/{job}/longtail', { params: { path, query: { cursor } }, signal }),
        );
      for await (const page of iteratePages(read)) {
        groups.push(...page.groups);
        if (groups.length >= MAX_GROUPS) break;
      }
      return { step: status.stepsTrained + 1, longtail: status.longtail, groups };
    },
    { everyMs: 10_000, after: ['round.opened', 'round.completed', 'round.settled'] },
  );
  return (
    <LiveData live={queue} what="the long-tail queue">
      {(value) => <QueueView {...value} job={job} />}
    </LiveData>
  );
}

function QueueView({ step, longtail, groups, job }: Queue & { job: string }) {
  const columns = useMemo(() => buildColumns(step), [step]);
  const ages = groups.map(({ firstStep }) => step - firstStep);
  const tokens = groups.map((group) => group.tokens / Math.max(1, group.samples));
  return (
    <Stack gap="md">
      <Stats>
        <Stat label="Groups in the queue" value={count(longtail.groups)} />
        <Stat label="Cut, not in the queue yet" value={count(longtail.settlingGroups)} />
        <Stat label="Greatest age, steps" value={groups.length === 0 ? '–' : Math.max(...ages)} />
        <Stat label="Most cuts" value={groups.length === 0 ? '–' : Math.max(...groups.map(({ cuts }) => cuts))} />
        <Stat label="Tokens kept" value={compact(groups.reduce((sum, group) => sum + group.tokens, 0))} />
      </Stats>
      <SimpleGrid cols={{ base: 1, md: 3 }}>
        <Section title="Age, steps">
          <Histogram label="Groups by age in steps" values={ages} />
        </Section>
        <Section title="Cuts">
          <Histogram label="Groups by number of cuts" values={groups.map(({ cuts }) => cuts)} />
        </Section>
        <Section title="Tokens of a sample so far">
          <Histogram label="Groups by mean tokens of their samples" values={tokens} isWide />
        </Section>
      </SimpleGrid>
      <Section title="Groups, oldest first" aside={<ExportQueue job={job} />}>
        <DataTable
          label="Groups of the long-tail queue"
          columns={columns}
          rows={groups}
          toKey={({ groupId }) => groupId}
          empty="The queue is empty: nothing was cut, or everything that was cut has been finished."
        />
      </Section>
      {groups.length < longtail.groups && (
        <Text size="sm" c="dimmed">
          These are the oldest {count(groups.length)} groups; the export has all of them.
        </Text>
      )}
    </Stack>
  );
}

function buildColumns(step: number): Column<Group>[] {
  return [
    { title: 'Group', value: ({ groupId }) => groupId },
    { title: 'Age, steps', value: ({ firstStep }) => step - firstStep, align: 'right' },
    { title: 'Cuts', value: ({ cuts }) => cuts, align: 'right' },
    {
      title: 'Samples finished',
      value: ({ finishedSamples, samples }) => finishedSamples / Math.max(1, samples),
      cell: ({ finishedSamples, samples }) => `${finishedSamples} of ${samples}`,
      align: 'right',
    },
    { title: 'Tokens', value: ({ tokens }) => tokens, format: count, align: 'right' },
  ];
}
