import { niceTicks, tickText } from './ticks';

export interface PlotPoint {
  x: number;
  y: number;
  /** Shown by the point, and when it is pointed at. */
  label?: string;
}
export interface PlotSeries {
  name: string;
  points: readonly PlotPoint[];
  /** Points alone, no line between them. */
  isScatter?: boolean;
}
export interface Plot {
  title: string;
  xLabel: string;
  yLabel: string;
  series: readonly PlotSeries[];
  /** A value of x or y that has a meaning, drawn as a thin line. */
  guides?: { x?: number; y?: number; text: string }[];
  /** Axes begin at 0 unless they say so. */
  isTight?: boolean;
}

const WIDTH = 760;
const HEIGHT = 440;
const MARGIN = { left: 64, right: 190, top: 44, bottom: 54 };
/** Told apart by people who do not see all colours (Okabe and Ito). */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000', '#8a6d00'];

/** A plot as a self-contained SVG: axes with ticks and units, a legend, the points' labels as tooltips. */
export function svgPlot(plot: Plot): string {
  const points = plot.series.flatMap((series) => series.points);
  const xs = niceTicks(
    points.map(({ x }) => x),
    plot.isTight ?? false,
  );
  const ys = niceTicks(
    points.map(({ y }) => y),
    plot.isTight ?? false,
  );
  const right = WIDTH - MARGIN.right;
  const bottom = HEIGHT - MARGIN.bottom;
  const px = (x: number): number => round(MARGIN.left + ((x - xs[0]!) / (xs.at(-1)! - xs[0]!)) * (right - MARGIN.left));
  const py = (y: number): number => round(bottom - ((y - ys[0]!) / (ys.at(-1)! - ys[0]!)) * (bottom - MARGIN.top));
  const parts = [
    `<text x="${MARGIN.left}" y="24" font-size="16" font-weight="600">${escaped(plot.title)}</text>`,
    ...xs.map((x) => gridLine(px(x), MARGIN.top, px(x), bottom)),
    ...ys.map((y) => gridLine(MARGIN.left, py(y), right, py(y))),
    ...xs.map((x) => `<text x="${px(x)}" y="${bottom + 18}" text-anchor="middle">${tickText(x)}</text>`),
    ...ys.map((y) => `<text x="${MARGIN.left - 8}" y="${py(y) + 4}" text-anchor="end">${tickText(y)}</text>`),
    `<text x="${(MARGIN.left + right) / 2}" y="${HEIGHT - 12}" text-anchor="middle">${escaped(plot.xLabel)}</text>`,
    `<text transform="translate(16 ${(MARGIN.top + bottom) / 2}) rotate(-90)" text-anchor="middle">${escaped(plot.yLabel)}</text>`,
    ...(plot.guides ?? []).map(({ x, y, text }) =>
      x === undefined
        ? guide(MARGIN.left, py(y!), right, py(y!), text, right - 4, py(y!) - 4)
        : guide(px(x), MARGIN.top, px(x), bottom, text, px(x) - 4, MARGIN.top + 12),
    ),
    ...plot.series.flatMap((series, index) => drawnSeries(series, colourOf(index), px, py)),
    ...plot.series.map((series, index) =>
      legendEntry(series.name, colourOf(index), right + 16, MARGIN.top + 8 + index * 20),
    ),
  ];
  return svg(WIDTH, HEIGHT, parts);
}

/** One bar for each value, the longest labels on the left. */
export function svg(width: number, height: number, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="12" fill="#222">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

export function gridLine(x1: number, y1: number, x2: number, y2: number): string {
  return `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="#e4e4e4"/>`;
}

function drawnSeries(
  series: PlotSeries,
  colour: string,
  px: (x: number) => number,
  py: (y: number) => number,
): string[] {
  const { points, isScatter, name } = series;
  const line = points.map(({ x, y }) => `${px(x)},${py(y)}`).join(' ');
  return [
    ...(isScatter ? [] : [`<polyline points="${line}" fill="none" stroke="${colour}" stroke-width="1.5"/>`]),
    ...points.map(({ x, y, label }) => {
      const hint = `${name}${label === undefined ? '' : ` ${label}`}: ${tickText(x)}, ${tickText(y)}`;
      return `<circle cx="${px(x)}" cy="${py(y)}" r="3.5" fill="${colour}"><title>${escaped(hint)}</title></circle>`;
    }),
    ...points
      .filter(({ label }) => label !== undefined)
      .map(
        ({ x, y, label }) =>
          `<text x="${px(x) + 6}" y="${py(y) - 5}" font-size="10" fill="${colour}">${escaped(label!)}</text>`,
      ),
  ];
}

function legendEntry(name: string, colour: string, x: number, y: number): string {
  return `<circle cx="${x}" cy="${y}" r="4" fill="${colour}"/><text x="${x + 10}" y="${y + 4}">${escaped(name)}</text>`;
}

function guide(x1: number, y1: number, x2: number, y2: number, text: string, tx: number, ty: number): string {
  const line = `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="#999" stroke-dasharray="4 3"/>`;
  return `${line}<text x="${tx}" y="${ty}" text-anchor="end" fill="#777">${escaped(text)}</text>`;
}

function colourOf(index: number): string {
  return COLOURS[index % COLOURS.length]!;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
