import { Group, Paper, Text } from '@mantine/core';
import type { ReactNode } from 'react';

export function Stat({ label, value, detail }: { label: string; value: ReactNode; detail?: ReactNode }) {
  return (
    <Paper withBorder px="md" py="xs" miw={110} component="dl" m={0}>
      <Text component="dt" size="xs" c="dimmed">
        {label}
      </Text>
      <Group component="dd" m={0} gap={6} align="baseline" wrap="nowrap">
        <Text span fw={600} size="lg">
          {value}
        </Text>
        {detail !== undefined && (
          <Text span size="xs" c="dimmed">
            {detail}
          </Text>
        )}
      </Group>
    </Paper>
  );
}

export function Stats({ children }: { children: ReactNode }) {
  return (
    <Group gap="xs" align="stretch">
      {children}
    </Group>
  );
}

export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Group justify="space-between" mb="xs">
        <Text component="h2" fw={600} m={0}>
          {title}
        </Text>
        {aside}
      </Group>
      {children}
    </Paper>
  );
}
