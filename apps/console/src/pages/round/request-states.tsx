import type { Schemas } from '@broomwagon/admin-client';
import { Box, Group, Text } from '@mantine/core';
import { count } from '../../components/format';

type Counts = Schemas['RequestCounts'];

const STATES: readonly { state: Exclude<keyof Counts, 'submitted'>; about: string; color: string }[] = [
  { state: 'pending', about: 'wait for a worker', color: 'gray.5' },
  { state: 'claimed', about: 'with a worker', color: 'blue.4' },
  { state: 'running', about: 'on an engine', color: 'cyan.7' },
  { state: 'cutting', about: 'being stopped', color: 'orange.6' },
  { state: 'unfinished', about: 'in the long-tail queue', color: 'yellow.6' },
  { state: 'finished', about: 'not trained yet', color: 'teal.6' },
  { state: 'trained', about: 'trained', color: 'green.8' },
  { state: 'failed', about: 'failed for good', color: 'red.7' },
  { state: 'dropped', about: 'never trained', color: 'red.4' },
];

/** Shows the requests of a job by state, as one bar. */
export function RequestStates({ requests }: { requests: Counts }) {
  return (
    <>
      <Group gap={0} h={14} wrap="nowrap" aria-hidden="true" style={{ borderRadius: 4, overflow: 'hidden' }}>
        {STATES.map(({ state, color }) => (
          <Box key={state} bg={color} h="100%" w={`${(requests[state] / Math.max(1, requests.submitted)) * 100}%`} />
        ))}
      </Group>
      <Group component="ul" gap="lg" mt="xs" p={0} m={0} style={{ listStyle: 'none' }}>
        {STATES.map(({ state, about, color }) => (
          <Group component="li" key={state} gap={6} wrap="nowrap">
            <Box w={10} h={10} bg={color} style={{ borderRadius: 2 }} aria-hidden="true" />
            <Text span size="sm">
              {state}{' '}
              <Text span fw={600}>
                {count(requests[state])}
              </Text>
            </Text>
            <Text span size="xs" c="dimmed">
              {about}
            </Text>
          </Group>
        ))}
      </Group>
    </>
  );
}
