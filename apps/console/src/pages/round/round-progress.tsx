import type { Schemas } from '@broomwagon/admin-client';
import { Badge, Group, Paper, Progress, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { count, dateTime, duration, percent, plainId } from '../../components/format';
import { brokenBounds } from './broken-bounds';

interface RoundProgressProps {
  round: Schemas['RoundStatus'];
  nowMs: number;
  /** The expected end of an open round. */
  children: ReactNode;
}

/** Shows accepted and needed groups, the time so far and the expected end. */
export function RoundProgress({ round, nowMs, children }: RoundProgressProps) {
  const { acceptedGroups, neededGroups, openedAtMs, completedAtMs } = round;
  const share = acceptedGroups / Math.max(1, neededGroups);
  return (
    <Paper withBorder p="md">
      <Group justify="space-between" mb={6}>
        <Group gap="xs">
          <Text fw={600}>Step {round.step}</Text>
          <Badge variant="light">{round.kind}</Badge>
          <Badge variant="light" color={round.state === 'open' ? 'green' : 'gray'}>
            {round.state}
          </Badge>
          <Text size="sm" c="dimmed">
            {round.choice?.auto === undefined ? '' : 'auto: '}
            {round.choice?.auto?.policy ?? round.policy.name}, launches ×{' '}
            {round.choice?.overProvision ?? round.policy.overProvision ?? 1}
          </Text>
        </Group>
        <Text size="sm">
          {count(acceptedGroups)} of {count(neededGroups)} groups ({percent(share)})
        </Text>
      </Group>
      <Progress
        value={share * 100}
        size="lg"
        aria-label={`${acceptedGroups} of ${neededGroups} groups are done`}
        transitionDuration={0}
      />
      <Group justify="space-between" mt={6}>
        <Text size="sm" c="dimmed">
          Opened at {dateTime(openedAtMs)},{' '}
          {completedAtMs === undefined
            ? `running for ${duration(nowMs - openedAtMs)}`
            : `done after ${duration(completedAtMs - openedAtMs)}${round.settled ? '' : ', cuts not confirmed yet'}`}
        </Text>
        {children}
      </Group>
      {round.blockedReason && (
        <Text size="sm" c="var(--bad)" role="alert" mt={6}>
          Blocked: {round.blockedReason.code}. {round.blockedReason.message}
        </Text>
      )}
      {brokenBounds(round.choice?.auto?.broken).map(({ by, text }) => (
        <Text key={by} size="sm" c={by === 'measured' ? 'var(--bad)' : 'dimmed'} mt={6}>
          {text}
        </Text>
      ))}
      {round.lastFailures?.map(({ requestId, reason, message }) => (
        <Text key={requestId} size="sm" c="var(--bad)">
          {plainId(requestId)} failed for good: {reason}. {message}
        </Text>
      ))}
    </Paper>
  );
}
