import { Text } from '@mantine/core';
import { Chart } from './chart';
import { compact } from './format';

const BINS = 24;

/** A chart of how often each value occurs. `isWide`: each range of equal width instead of each value. */
export function Histogram({
  label,
  values,
  isWide = false,
}: {
  label: string;
  values: readonly number[];
  isWide?: boolean;
}) {
  if (values.length === 0) return <Text c="dimmed">Nothing to show.</Text>;
  const width = isWide ? Math.max(1, Math.ceil(Math.max(...values) / BINS)) : 1;
  const counts = new Map<number, number>();
  for (const value of values) {
    const bin = Math.floor(value / width);
    counts.set(bin, (counts.get(bin) ?? 0) + 1);
  }
  const last = Math.max(...counts.keys());
  const x = Array.from({ length: last + 1 }, (_, bin) => bin);
  return (
    <Chart
      label={label}
      x={x}
      lines={[{ label: 'groups', values: x.map((bin) => counts.get(bin) ?? 0), color: 'bar', isBar: true }]}
      height={140}
      formatX={(bin) => compact(bin * width)}
      formatY={compact}
      isCount
    />
  );
}
