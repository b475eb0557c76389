import type { Schemas } from '@broomwagon/admin-client';
import { Badge, Text } from '@mantine/core';
import { type Column, DataTable } from '../../components/data-table';
import { formatUnread, type Overview } from './format-unread';

type Replica = Schemas['ReadinessReply'];

const COLUMNS: Column<Replica>[] = [
  { title: 'Service', value: ({ app }) => app },
  { title: 'Replica', value: ({ replicaId }) => replicaId },
  { title: 'Version', value: ({ version }) => version },
  {
    title: 'Ready',
    value: ({ ready }) => Number(ready),
    cell: ({ ready }) => (
      <Badge variant="light" size="sm" color={ready ? 'green' : 'red'}>
        {ready ? 'ready' : 'not ready'}
      </Badge>
    ),
  },
  { title: 'Reason', value: formatReasons },
];

function formatReasons({ checks }: Replica): string | undefined {
  const reasons = checks.flatMap(({ check, reason }) => (reason === undefined ? [] : [`${check}: ${reason}`]));
  return reasons.length === 0 ? undefined : reasons.join('; ');
}

/** The replicas of all services that answer, with version and readiness. */
export function Services({ overview }: { overview: Overview }) {
  const { services } = overview;
  if (services === undefined) return <Text size="sm">{formatUnread(overview, 'services')}</Text>;
  const versions = new Set(services.map(({ version }) => version));
  return (
    <>
      {versions.size > 1 && (
        <Text size="sm" c="var(--stale)" mb="xs">
          The replicas have {versions.size} versions: an upgrade is under way, or has stopped.
        </Text>
      )}
      <DataTable
        label="Services"
        columns={COLUMNS}
        rows={services}
        toKey={({ app, replicaId }) => `${app} ${replicaId}`}
        empty="No replica answers."
        height={280}
      />
    </>
  );
}
