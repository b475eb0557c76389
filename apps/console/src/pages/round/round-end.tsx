import { Text } from '@mantine/core';
import { dateTime, duration, plainId } from '../../components/format';
import type { Explanation } from '../use-explanation';

/** Says by when a round has its groups, or that the time is unknown, with the reason. */
export function RoundEnd({ explanation: { end, atMs } }: { explanation: Explanation }) {
  if (end === undefined) return null;
  const { byMs, reason } = end;
  return (
    <Text size="sm" data-end>
      {byMs !== undefined && `End expected by ${dateTime(byMs)}, in ${duration(byMs - atMs)} `}
      <Text span size="sm" c={byMs === undefined ? undefined : 'dimmed'}>
        {byMs === undefined ? `End expected: ${plainId(reason)}` : `(${plainId(reason)})`}
      </Text>
    </Text>
  );
}
