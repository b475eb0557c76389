import type { Schemas } from '@broomwagon/admin-client';
import { Alert, Anchor, Badge, Group, Paper, Stack, Text } from '@mantine/core';
import { dateTime, duration } from '../../components/format';
import { useNow } from '../../components/use-now';
import { buildHref } from '../../address/route';
import { PauseAction } from '../fleet/pause-action';

type Alarm = Schemas['OverviewAlarm'];

/** What is wrong in the pool, worst first, each with its page, its runbook and its action. */
export function AlarmList({ alarms, onDone }: { alarms: readonly Alarm[]; onDone(): void }) {
  if (alarms.length === 0) {
    return (
      <Alert color="green" title="Nothing is wrong" role="status">
        All parts answer, and no alarm is raised.
      </Alert>
    );
  }
  return (
    <Stack gap="xs" component="ul" p={0} m={0} aria-label="Alarms" style={{ listStyle: 'none' }}>
      {alarms.map((alarm) => (
        <AlarmRow key={`${alarm.runbook} ${alarm.message}`} alarm={alarm} onDone={onDone} />
      ))}
    </Stack>
  );
}

function AlarmRow({ alarm, onDone }: { alarm: Alarm; onDone(): void }) {
  const { severity, message, advice, sinceMs, runbook } = alarm;
  return (
    <Paper withBorder p="sm" component="li" className="alarm" data-severity={severity}>
      <Group gap="xs" align="baseline">
        <Badge variant="light" color={severity === 'critical' ? 'red' : 'orange'}>
          {severity}
        </Badge>
        <Text fw={600} size="sm" style={{ overflowWrap: 'anywhere' }}>
          {message}
        </Text>
        {sinceMs !== undefined && <Since ms={sinceMs} />}
      </Group>
      <Text size="sm" mt={4}>
        {advice}
      </Text>
      <Group gap="md" mt={4}>
        {listLinks(alarm).map(({ label, href }) => (
          <Anchor key={label} href={href} size="sm">
            {label}
          </Anchor>
        ))}
        <Anchor href={buildHref('runbooks', { name: runbook })} size="sm">
          Runbook {runbook}
        </Anchor>
        {message.startsWith('The pool is paused') && <PauseAction onDone={onDone} />}
      </Group>
    </Paper>
  );
}

function Since({ ms }: { ms: number }) {
  const now = useNow();
  return (
    <Text size="sm" c="dimmed">
      since {dateTime(ms)} ({duration(now - ms)})
    </Text>
  );
}

/** Pages that show the place of an alarm. */
function listLinks({ serverIds, job, roundId }: Alarm): { label: string; href: string }[] {
  const server = serverIds?.length === 1 ? serverIds[0] : undefined;
  return [
    ...(serverIds === undefined
      ? []
      : [{ label: server === undefined ? 'Servers' : `Server ${server}`, href: buildHref('fleet', { server }) }]),
    ...(roundId === undefined
      ? []
      : [
          { label: 'Round', href: buildHref('round', { job, round: roundId }) },
          { label: 'Timeline: why it is slow', href: buildHref('timeline', { job, round: roundId }) },
        ]),
  ];
}
