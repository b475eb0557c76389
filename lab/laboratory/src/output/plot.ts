import { type EChartsOption, init } from 'echarts';

export interface PlotPoint {
  x: number;
  y: number;
  /** Text beside the point. */
  label?: string;
  /** Least and most of several runs, drawn as bars through the point. */
  xRange?: Range;
  yRange?: Range;
}
export type Range = readonly [least: number, most: number];

export interface Plot {
  title: string;
  xLabel: string;
  yLabel: string;
  series: readonly { name: string; points: readonly PlotPoint[] }[];
  /** A value of y that has a meaning, drawn as a dashed line. */
  guide?: { y: number; text: string };
  /** Whether axes start near the least value instead of at 0. */
  isTight?: boolean;
}

/** Colours that people with colour blindness can distinguish (Okabe and Ito). */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000', '#8a6d00'];

/** Draws lines through points as a self-contained SVG with a legend. */
export function svgPlot({ title, xLabel, yLabel, series, guide, isTight }: Plot): string {
  const axis = { type: 'value', nameLocation: 'middle', scale: isTight ?? false } as const;
  const guideLine = guide && {
    silent: true,
    symbol: 'none',
    lineStyle: { color: '#999' },
    data: [{ yAxis: guide.y, label: { formatter: guide.text, position: 'insideEndTop' as const } }],
  };
  return buildSvg(
    { width: 800, height: 440 },
    {
      title: { text: title, left: 16, textStyle: { fontSize: 16 } },
      color: COLOURS,
      legend: { orient: 'vertical', left: 595, top: 40, data: series.map(({ name }) => name) },
      grid: { left: 64, right: 220, top: 44, bottom: 54 },
      xAxis: { ...axis, name: xLabel, nameGap: 30 },
      yAxis: { ...axis, name: yLabel, nameGap: 44 },
      series: [
        ...series.map(({ name, points }, index) => ({
          type: 'line' as const,
          name,
          symbol: 'circle',
          symbolSize: 7,
          data: points.map(({ x, y, label }) => ({
            value: [x, y],
            label: { show: label !== undefined, formatter: label, fontSize: 10, color: 'inherit' },
          })),
          markLine: index === 0 ? guideLine : undefined,
        })),
        ...series.flatMap(({ points }, index) =>
          points.flatMap((point) => rangeBars(point, COLOURS[index % COLOURS.length]!)),
        ),
      ],
    },
  );
}

function rangeBars({ x, y, xRange, yRange }: PlotPoint, color: string) {
  const bars = [xRange && xRange.map((one) => [one, y]), yRange && yRange.map((one) => [x, one])];
  return bars
    .filter((data) => data !== undefined)
    .map((data) => ({ type: 'line' as const, data, symbol: 'none', silent: true, lineStyle: { color, width: 1 } }));
}

/** Draws a chart as SVG without a browser. */
export function buildSvg(size: { width: number; height: number }, option: EChartsOption): string {
  const chart = init(null, null, { renderer: 'svg', ssr: true, ...size });
  try {
    chart.setOption({ animation: false, backgroundColor: '#fff', ...option });
    return chart.renderToSVGString();
  } finally {
    chart.dispose();
  }
}
