import { Box } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { type Palette, usePalette } from './palette';

export interface ChartLine {
  label: string;
  values: readonly (number | null)[];
  color: keyof Palette;
  isBar?: boolean;
  format?(value: number): string;
}

interface ChartProps {
  /** Description of the chart, for screen readers. */
  label: string;
  x: readonly number[];
  lines: readonly ChartLine[];
  height?: number;
  formatX?(value: number): string;
  /** Possible distances between ticks of the x axis. */
  stepsX?: readonly number[];
  formatY?(value: number): string;
  /** The values are numbers of things, so ticks of the y axis are whole numbers. */
  isCount?: boolean;
  /** Values that the y axis always includes. */
  include?: readonly number[];
}

const STEPS = [1, 2, 5, 10, 20, 50, 100];
/** Possible distances between ticks of counts. */
const COUNT_STEPS = Array.from({ length: 9 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/** A chart of lines or bars over a number, in the colors of the page. */
export function Chart({
  label,
  x,
  lines,
  height = 180,
  formatX,
  stepsX = STEPS,
  formatY = String,
  isCount = false,
  include = [0],
}: ChartProps) {
  const { ref: box, width } = useElementSize();
  const host = useRef<HTMLDivElement>(null);
  const palette = usePalette();
  const contents = JSON.stringify([x, lines, include]);
  useEffect(() => {
    if (host.current === null || width === 0) return undefined;
    const axis = { stroke: palette.text, grid: { stroke: palette.grid, width: 1 }, ticks: { show: false } };
    const plot = new uPlot(
      {
        width,
        height,
        cursor: { drag: { x: false, y: false } },
        legend: { show: lines.length > 1, live: false },
        scales: {
          x: { time: false, range: (_, low, high) => [low - 0.5, high + 0.5] },
          y: {
            range: (_, low, high) => {
              const values = [low, high, ...include].filter((value) => Number.isFinite(value));
              const [least, most] = [Math.min(...values), Math.max(...values)];
              return [least, most === least ? least + 1 : most + (most - least) * 0.08];
            },
          },
        },
        axes: [
          {
            ...axis,
            size: 30,
            space: 40,
            incrs: [...stepsX],
            values: (_, ticks) => ticks.map((tick) => (formatX ?? String)(tick)),
          },
          {
            ...axis,
            size: 58,
            values: (_, ticks) => ticks.map(formatY),
            ...(isCount ? { incrs: COUNT_STEPS } : {}),
          },
        ],
        series: [
          {},
          ...lines.map(({ label, color, isBar }) => ({
            label,
            stroke: palette[color],
            fill: isBar ? palette[color] : undefined,
            width: isBar ? 0 : 2,
            points: { show: !isBar, size: 6, fill: palette[color] },
            paths: isBar ? uPlot.paths.bars!({ size: [0.8, 60] }) : undefined,
          })),
        ],
      },
      [[...x], ...lines.map(({ values }) => [...values])] as uPlot.AlignedData,
      host.current,
    );
    return () => plot.destroy();
    // The arrays are new at each call, so the text `contents` is the dependency in their place.
  }, [width, height, palette, contents, isCount]);
  const text = lines.map((line) => `${line.label}: ${formatSummary(line, formatY)}`).join('; ');
  return (
    <Box ref={box} role="img" aria-label={`${label}. ${text}`}>
      <div ref={host} />
    </Box>
  );
}

function formatSummary({ values, format }: ChartLine, formatY: (value: number) => string): string {
  const found = values.filter((value) => value !== null);
  if (found.length === 0) return 'no values';
  return `last ${(format ?? formatY)(found.at(-1)!)}, from ${formatY(Math.min(...found))} to ${formatY(Math.max(...found))}`;
}
