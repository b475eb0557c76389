import { type Bar, type Phase, type RoundHistory } from './bars';
import { onServer } from './explain';

export const ORDERS = ['server', 'end'] as const;
/** `server`: rows are places on servers. `end`: rows are requests; the request that ended last comes first. */
export type Order = (typeof ORDERS)[number];

export interface PlacedBar {
  bar: Bar;
  row: number;
  phases: Bar['phases'];
}
export interface Lane {
  label: string;
  row: number;
  rows: number;
}
export interface Layout {
  bars: PlacedBar[];
  lanes: Lane[];
  rows: number;
}

const OFF_SERVER: ReadonlySet<Phase> = new Set(['queue', 'server-wait', 'report']);

export function layOut({ bars }: RoundHistory, order: Order): Layout {
  return order === 'server' ? byServer(bars) : byEnd(bars);
}

/** Places each attempt in the first free row of its server, as an engine places requests in slots. */
function byServer(bars: readonly Bar[]): Layout {
  const served = bars.filter((bar) => onServer(bar) !== undefined);
  const servers = grouped(served, ({ serverId }) => serverId!);
  const layout: Layout = { bars: [], lanes: [], rows: 0 };
  const names = [...servers.keys()].sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));
  for (const label of names) {
    const freeAtMs: number[] = [];
    const spans = servers.get(label)!.map((bar) => ({ bar, span: onServer(bar)! }));
    for (const { bar, span } of spans.sort((one, other) => one.span.fromMs - other.span.fromMs)) {
      let row = freeAtMs.findIndex((atMs) => atMs <= span.fromMs);
      if (row === -1) row = freeAtMs.length;
      freeAtMs[row] = span.toMs;
      const phases = bar.phases.filter(({ phase }) => !OFF_SERVER.has(phase));
      layout.bars.push({ bar, row: layout.rows + row, phases });
    }
    layout.lanes.push({ label, row: layout.rows, rows: freeAtMs.length });
    layout.rows += freeAtMs.length;
  }
  return layout;
}

function byEnd(bars: readonly Bar[]): Layout {
  const requests = [...grouped(bars, ({ requestId }) => requestId).values()];
  const findEnd = (attempts: readonly Bar[]): number => attempts.reduce((last, { toMs }) => Math.max(last, toMs), 0);
  const sorted = requests.map((attempts) => ({ attempts, endMs: findEnd(attempts) }));
  sorted.sort((one, other) => other.endMs - one.endMs);
  const placed = sorted.flatMap(({ attempts }, row) => attempts.map((bar) => ({ bar, row, phases: bar.phases })));
  return { bars: placed, lanes: [], rows: sorted.length };
}

function grouped(bars: readonly Bar[], keyOf: (bar: Bar) => string): Map<string, Bar[]> {
  const groups = new Map<string, Bar[]>();
  for (const bar of bars) {
    const group = groups.get(keyOf(bar));
    if (group === undefined) groups.set(keyOf(bar), [bar]);
    else group.push(bar);
  }
  return groups;
}

export interface View {
  fromMs: number;
  toMs: number;
  fromRow: number;
  toRow: number;
}

export function wholeView({ fromMs, toMs }: RoundHistory, { rows }: Layout): View {
  const marginMs = (toMs - fromMs) * 0.01;
  return { fromMs: fromMs - marginMs, toMs: toMs + marginMs, fromRow: 0, toRow: Math.max(1, rows) };
}

/** Makes the view `factor` times as large around the point `at`, given as parts of the view from 0 to 1. */
export function zoom(view: View, factor: number, at: { x: number; y: number }, axes: { x: boolean; y: boolean }): View {
  const scale = (from: number, to: number, part: number): [number, number] => {
    const center = from + (to - from) * part;
    return [center - (center - from) * factor, center + (to - center) * factor];
  };
  const [fromMs, toMs] = axes.x ? scale(view.fromMs, view.toMs, at.x) : [view.fromMs, view.toMs];
  const [fromRow, toRow] = axes.y ? scale(view.fromRow, view.toRow, at.y) : [view.fromRow, view.toRow];
  if (toMs - fromMs < 1 || toRow - fromRow < 0.5) return view;
  return { fromMs, toMs, fromRow, toRow };
}

/** Moves the view by `x` and `y`, given as parts of its size. */
export function pan(view: View, x: number, y: number): View {
  const byMs = (view.toMs - view.fromMs) * x;
  const byRows = (view.toRow - view.fromRow) * y;
  return {
    fromMs: view.fromMs + byMs,
    toMs: view.toMs + byMs,
    fromRow: view.fromRow + byRows,
    toRow: view.toRow + byRows,
  };
}
