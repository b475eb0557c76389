import type { Schemas } from '@broomwagon/admin-client';
import { Text } from '@mantine/core';
import { Chart } from '../../components/chart';
import { compact } from '../../components/format';

/** Distances of ticks, in quarters of a doubling. A narrow range has ticks within a doubling, too. */
const DOUBLINGS = [1, 2, 4, 8, 16, 32];

/** A chart of samples by length. Samples that run are not counted. */
export function LengthChart({ lengths }: { lengths: readonly Schemas['LengthRange'][] }) {
  if (lengths.length === 0) return <Text c="dimmed">No sample has ended or was cut yet.</Text>;
  // The axis has quarters of a doubling, so that short and long samples are both visible.
  const x = lengths.map(({ fromTokens }) => Math.round(Math.log2(Math.max(1, fromTokens)) * 4));
  return (
    <Chart
      label="Samples by length in tokens"
      x={x}
      lines={[
        {
          label: 'all, with those that were cut',
          values: lengths.map(({ finished, unfinished }) => finished + unfinished),
          color: 'soft',
          isBar: true,
        },
        { label: 'finished', values: lengths.map(({ finished }) => finished), color: 'bar', isBar: true },
      ]}
      formatX={(quarter) => compact(Math.round(2 ** (quarter / 4)))}
      stepsX={DOUBLINGS}
      formatY={compact}
      isCount
    />
  );
}
