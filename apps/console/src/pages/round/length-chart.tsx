import type { Schemas } from '@broomwagon/admin-client';
import { Text } from '@mantine/core';
import { Chart, type ChartLine } from '../../components/chart';
import { compact } from '../../components/format';
import { addRunning } from './add-running';

/** Distances of ticks, in quarters of a doubling. A narrow range has ticks within a doubling, too. */
const DOUBLINGS = [1, 2, 4, 8, 16, 32];

interface LengthChartProps {
  /** Samples that ended or were cut. */
  lengths: readonly Schemas['LengthRange'][];
  /** Running samples, by their tokens so far; absent if none runs, or if they are not known. */
  running?: readonly Schemas['RunningLengths'][];
}

/** A chart of samples by length. The bars of a range stand on each other: finished, cut, running. */
export function LengthChart({ lengths, running }: LengthChartProps) {
  const ranges = addRunning(lengths, running);
  if (ranges.length === 0) return <Text c="dimmed">No sample runs, has ended or was cut yet.</Text>;
  // The axis has quarters of a doubling, so that short and long samples are both visible.
  const x = ranges.map(({ fromTokens }) => Math.round(Math.log2(Math.max(1, fromTokens)) * 4));
  const runs: ChartLine = {
    label: 'finished, cut or running',
    values: ranges.map((range) => range.finished + range.unfinished + range.running),
    color: 'soft',
    isBar: true,
  };
  return (
    <Chart
      label="Samples by length in tokens"
      x={x}
      lines={[
        ...(running === undefined ? [] : [runs]),
        {
          label: 'finished or cut',
          values: ranges.map(({ finished, unfinished }) => finished + unfinished),
          color: 'warn',
          isBar: true,
        },
        { label: 'finished', values: ranges.map(({ finished }) => finished), color: 'bar', isBar: true },
      ]}
      formatX={(quarter) => compact(Math.round(2 ** (quarter / 4)))}
      stepsX={DOUBLINGS}
      formatY={compact}
      isCount
    />
  );
}
