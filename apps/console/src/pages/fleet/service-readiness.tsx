import { readData, type Schemas } from '@broomwagon/admin-client';
import { Alert, List, Text } from '@mantine/core';
import { LiveData } from '../../components/live-data';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';

/** Shows replicas that are not ready or have a warning, with the reasons from `/readyz`. */
export function ServiceReadiness() {
  const { client } = useSession();
  const { pool } = useScope();
  const readiness = useLive(`${pool}/readiness`, (signal) =>
    readData(client.GET('/api/v1/pools/{pool}/readiness', { params: { path: { pool } }, signal })),
  );
  return (
    <LiveData live={readiness} what="the readiness of the services">
      {(value) => <Problems replicas={value.replicas.filter(hasReason)} />}
    </LiveData>
  );
}

function Problems({ replicas }: { replicas: readonly Schemas['ReadinessReply'][] }) {
  if (replicas.length === 0) return null;
  return (
    <Alert
      color={replicas.some(({ ready }) => !ready) ? 'red' : 'orange'}
      title="Services with problems"
      role="status"
      aria-label="Services with problems"
    >
      <List size="sm">
        {replicas.map(({ app, replicaId, ready, checks }) => (
          <List.Item key={replicaId}>
            <Text size="sm">
              {app} {replicaId} is {ready ? 'ready' : 'not ready'}:{' '}
              {checks.flatMap(({ check, reason }) => (reason === undefined ? [] : [`${check}: ${reason}`])).join('; ')}
            </Text>
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}

function hasReason({ checks }: Schemas['ReadinessReply']): boolean {
  return checks.some(({ reason }) => reason !== undefined);
}
