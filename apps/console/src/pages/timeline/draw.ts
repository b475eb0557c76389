import { plainId } from '../../components/format';
import { type Bar, type Outcome, type Phase, PHASES, type RoundHistory, type Span } from './bars';
import type { Layout, PlacedBar, View } from './layout';

export type Ink = Phase | 'pause' | 'server-pause' | 'mark' | 'text' | 'grid' | 'ground';
export type Inks = Record<Ink, string>;

/** Colors for a canvas, which reads no style sheet. */
export const INKS: Record<'light' | 'dark', Inks> = {
  light: {
    queue: '#adb5bd',
    'server-wait': '#e67700',
    prefill: '#6741d9',
    decode: '#0c8599',
    report: '#5c940d',
    unknown: '#868e96',
    pause: '#f8d7da',
    'server-pause': '#eb8a94',
    mark: '#c92a2a',
    text: '#343a40',
    grid: '#dee2e6',
    ground: '#ffffff',
  },
  dark: {
    queue: '#5c636a',
    'server-wait': '#fcc419',
    prefill: '#9775fa',
    decode: '#22b8cf',
    report: '#94d82d',
    unknown: '#868e96',
    pause: '#4a2328',
    'server-pause': '#9b3d48',
    mark: '#ff8787',
    text: '#ced4da',
    grid: '#373a40',
    ground: '#1f2226',
  },
};

/** Height of each phase, as a part of a row. Phases differ in color and in height. */
export const HEIGHTS: Record<Phase, number> = {
  queue: 0.25,
  'server-wait': 0.5,
  prefill: 0.95,
  decode: 0.75,
  report: 0.4,
  unknown: 0.6,
};
const MARKED: ReadonlySet<Outcome> = new Set(['cut', 'moved', 'stopped', 'returned', 'failed', 'dropped']);

export const GUTTER = 104;
export const AXIS = 24;
const LABEL_HEIGHT = 11;
const LABELLED_ROW = 13;
const TICKS = 8;

/** Size of the whole drawing, pixels. */
export interface Size {
  width: number;
  height: number;
}

export interface Painter {
  /** Sets the ink of all later calls. */
  use(ink: Ink): void;
  rect(x: number, y: number, width: number, height: number): void;
  /** Draws a text with its middle at `y`, and shortens it to `most` pixels. */
  text(x: number, y: number, text: string, most: number): void;
}

export interface Scene {
  history: RoundHistory;
  layout: Layout;
  view: View;
  size: Size;
}

/** Functions that turn times and rows into pixels. */
export function scales({ view, size }: Scene) {
  const perMs = (size.width - GUTTER) / (view.toMs - view.fromMs);
  const perRow = (size.height - AXIS) / (view.toRow - view.fromRow);
  return {
    x: (atMs: number): number => GUTTER + (atMs - view.fromMs) * perMs,
    y: (row: number): number => AXIS + (row - view.fromRow) * perRow,
    perRow,
  };
}

/** Draws bars, pauses and axes, one ink after the other, because changes of ink cost most on a canvas. */
export function paint(scene: Scene, painter: Painter): void {
  const { history, layout, view, size } = scene;
  const { x, y, perRow } = scales(scene);
  const clip = (left: number, right: number): [number, number] => [Math.max(GUTTER, left), Math.min(size.width, right)];
  painter.use('ground');
  painter.rect(0, 0, size.width, size.height);
  const paintPause = (pause: Span, top: number, bottom: number): void => {
    const [left, right] = clip(x(pause.fromMs), x(pause.toMs));
    if (right > left && bottom > top) painter.rect(left, top, Math.max(1, right - left), bottom - top);
  };
  painter.use('pause');
  for (const pause of history.pauses) if (pause.serverId === undefined) paintPause(pause, AXIS, size.height);
  painter.use('server-pause');
  const lanes = new Map(layout.lanes.map((lane) => [lane.label, lane]));
  for (const pause of history.pauses) {
    const lane = lanes.get(pause.serverId ?? '');
    if (lane) paintPause(pause, Math.max(AXIS, y(lane.row)), y(lane.row + lane.rows));
  }
  const seen = layout.bars.filter(
    ({ bar, row }) => row + 1 > view.fromRow && row < view.toRow && bar.toMs > view.fromMs && bar.fromMs < view.toMs,
  );
  for (const phase of PHASES) {
    painter.use(phase);
    const spans: PixelSpan[] = [];
    for (const { row, phases } of seen) {
      for (const span of phases) {
        const [left, right] = clip(x(span.fromMs), x(span.toMs));
        if (span.phase === phase && right > left) spans.push({ top: y(row), left, right });
      }
    }
    paintSpans(spans, perRow, HEIGHTS[phase], painter);
  }
  painter.use('mark');
  const marks = seen
    .filter(({ bar }) => MARKED.has(bar.outcome))
    .map(({ row, phases, bar }) => ({ top: y(row), end: x(phases.at(-1)?.toMs ?? bar.toMs) }))
    .filter(({ end }) => end >= GUTTER);
  paintSpans(
    marks.map(({ top, end }) => ({ top, left: end - 1, right: end + 1 })),
    perRow,
    1,
    painter,
  );
  if (perRow >= LABELLED_ROW) labelBars(seen, scene, painter);
  paintAxes(scene, painter);
}

interface PixelSpan {
  top: number;
  left: number;
  right: number;
}

/**
 * Draws spans of rows. If rows are lower than a pixel, joins spans that touch, because the number of drawn spans costs
 * most.
 */
function paintSpans(spans: readonly PixelSpan[], perRow: number, part: number, painter: Painter): void {
  if (perRow >= 1) {
    const height = perRow * part;
    for (const { top, left, right } of spans) {
      painter.rect(left, top + (perRow - height) / 2, Math.max(0.5, right - left), height);
    }
    return;
  }
  const sorted = spans.map(({ top, left, right }) => ({
    line: Math.floor(top),
    left,
    right: Math.max(left + 1, right),
  }));
  sorted.sort((one, other) => one.line - other.line || one.left - other.left);
  let open: (typeof sorted)[number] | undefined;
  const close = (): void => open && painter.rect(open.left, open.line, open.right - open.left, 1);
  for (const span of sorted) {
    if (open !== undefined && open.line === span.line && span.left <= open.right) {
      open.right = Math.max(open.right, span.right);
    } else {
      close();
      open = span;
    }
  }
  close();
}

function labelBars(seen: readonly PlacedBar[], scene: Scene, painter: Painter): void {
  const { x, y, perRow } = scales(scene);
  painter.use('ground');
  for (const { bar, row, phases } of seen) {
    for (const span of phases) {
      const left = Math.max(GUTTER, x(span.fromMs));
      const most = Math.min(scene.size.width, x(span.toMs)) - left - 6;
      if (span.phase !== 'decode' || most < 48) continue;
      painter.text(left + 3, y(row) + perRow / 2, formatLabel(bar), most);
    }
  }
}

function paintAxes(scene: Scene, painter: Painter): void {
  const { history, layout, view, size } = scene;
  const { x, y, perRow } = scales(scene);
  painter.use('ground');
  painter.rect(0, 0, GUTTER, size.height);
  painter.rect(0, 0, size.width, AXIS);
  painter.use('grid');
  const stepMs = computeTick((view.toMs - view.fromMs) / TICKS);
  const ticks: number[] = [];
  const first = Math.ceil((view.fromMs - history.fromMs) / stepMs) * stepMs + history.fromMs;
  for (let atMs = first; atMs < view.toMs; atMs += stepMs) ticks.push(atMs);
  for (const atMs of ticks) painter.rect(x(atMs), AXIS - 5, 1, size.height - AXIS + 5);
  const lanes = layout.lanes.filter(({ row, rows }) => row + rows > view.fromRow && row < view.toRow);
  for (const { row } of lanes) if (y(row) >= AXIS) painter.rect(0, y(row), size.width, 1);
  painter.use('text');
  for (const atMs of ticks) painter.text(x(atMs) + 3, AXIS / 2, tickLabel(atMs - history.fromMs, stepMs), 80);
  let free = AXIS;
  for (const { row, rows, label } of lanes) {
    const middle = (Math.max(AXIS, y(row)) + Math.min(size.height, y(row) + rows * perRow)) / 2;
    if (middle - LABEL_HEIGHT / 2 < free) continue;
    painter.text(6, middle, plainId(label), GUTTER - 12);
    free = middle + LABEL_HEIGHT / 2;
  }
  const { completedAtMs } = history;
  if (completedAtMs !== undefined && x(completedAtMs) >= GUTTER) {
    painter.rect(x(completedAtMs), AXIS, 1, size.height - AXIS);
  }
}

/**
 * Distance between ticks, milliseconds: up to ten seconds 1, 2 or 5 times a power of ten, above it a part of a minute,
 * an hour or a day.
 */
function computeTick(atLeastMs: number): number {
  const [minuteMs, hourMs] = [60_000, 3_600_000];
  const round = [0.5, 1, 2, 5, 10, 30].map((minutes) => minutes * minuteMs);
  const long = [1, 2, 6, 12].map((hours) => hours * hourMs);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, atLeastMs)));
  const decimal = [1, 2, 5, 10].map((factor) => factor * power);
  const steps = atLeastMs <= 10_000 ? decimal : [20_000, ...round, ...long];
  return steps.find((step) => step >= atLeastMs) ?? 24 * hourMs * Math.ceil(atLeastMs / (24 * hourMs));
}

/** Label of a tick: seconds, or hours:minutes:seconds, with enough digits to tell ticks apart. */
function tickLabel(ms: number, stepMs: number): string {
  const digits = Math.max(0, Math.ceil(3 - Math.log10(stepMs)));
  const seconds = Math.abs(Math.round(ms)) / 1_000;
  const sign = ms < 0 ? '-' : '';
  if (seconds < 60) return `${sign}${seconds.toFixed(digits)} s`;
  const minutes = String(Math.floor(seconds / 60) % 60).padStart(2, '0');
  const rest = (seconds % 60).toFixed(digits).padStart(digits === 0 ? 2 : digits + 3, '0');
  return `${sign}${Math.floor(seconds / 3_600)}:${minutes}:${rest}`;
}

function formatLabel({ requestId, tokens }: Bar): string {
  return `${plainId(requestId)} · ${tokens}`;
}

export function barAt(scene: Scene, at: { x: number; y: number }): Bar | undefined {
  if (at.x < GUTTER || at.y < AXIS) return undefined;
  const { view, size, layout } = scene;
  const atMs = view.fromMs + ((at.x - GUTTER) / (size.width - GUTTER)) * (view.toMs - view.fromMs);
  const row = Math.floor(view.fromRow + ((at.y - AXIS) / (size.height - AXIS)) * (view.toRow - view.fromRow));
  // Only drawn phases count: in the rows of a server, hidden phases of a bar may overlap other bars.
  const isAt = ({ phases }: PlacedBar): boolean => phases.some(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs);
  return layout.bars.find((one) => one.row === row && isAt(one))?.bar;
}
