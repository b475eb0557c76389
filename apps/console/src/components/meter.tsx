import { Box, Group, Text } from '@mantine/core';

/** A bar with its value as text; the color changes at 70 % and 90 %. */
export function Meter({ share, text, width = 120 }: { share?: number; text: string; width?: number }) {
  const filled = Math.min(1, Math.max(0, share ?? 0));
  const color = filled >= 0.9 ? 'var(--bad)' : filled >= 0.7 ? 'var(--warn)' : 'var(--bar)';
  return (
    <Group gap="xs" wrap="nowrap">
      <Box w={width} h={8} bg="var(--track)" style={{ borderRadius: 4, overflow: 'hidden' }} aria-hidden="true">
        <Box h="100%" w={`${filled * 100}%`} bg={color} />
      </Box>
      <Text span size="xs">
        {text}
      </Text>
    </Group>
  );
}
