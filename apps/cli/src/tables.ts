import Table from 'cli-table3';

/** Value of a cell. Undefined and empty texts are shown as `-`, objects as JSON. */
export type Cell = unknown;

const BORDERS = ['top', 'bottom', 'left', 'right', 'mid', 'middle'].flatMap((name) =>
  ['', '-mid', '-left', '-right'].map((end) => [name + end, '']),
);

function plainTable(head: string[], cells: string[][]): string {
  const table = new Table({
    head,
    chars: Object.fromEntries(BORDERS) as Record<string, string>,
    style: { 'padding-left': 0, 'padding-right': 2, head: [], border: [], compact: true },
  });
  table.push(...cells);
  const lines = table.toString().split('\n');
  return lines.map((line) => line.trimEnd()).join('\n');
}

/** Columns of the terminal: wider tables are made narrower. A file or a pipe gets whole tables. */
export const layout = { columns: Infinity };
/** Columns that every cell keeps. */
const MIN_WIDTH = 8;
const GAP = 2;

/** Formats rows as a table with a column for each field. */
export function formatTable(rows: readonly Record<string, Cell>[]): string {
  if (rows.length === 0) return '(none)';
  const names = Object.keys(rows[0]!);
  const head = names.map((name) => name.toUpperCase());
  return plainTable(head, fit([head, ...rows.map((row) => names.map((name) => formatCell(row[name])))]).slice(1));
}

/**
 * Formats an object with one field on each line: times and durations as people read them, fields of inner objects with
 * their path, and lists of objects as tables behind.
 */
export function formatFields(object: object): string {
  const lists: [string, object[]][] = [];
  const fields = flatten(object, '', lists);
  const tables = lists.map(([name, list]) => `${name.toUpperCase()}\n${formatTable(list.map(readableRow))}`);
  return [...(fields.length > 0 ? [plainTable([], fit(fields))] : []), ...tables].join('\n\n');
}

/** The fields of an object as names and texts. Lists of objects are added to `lists`. */
function flatten(object: object, path: string, lists: [string, object[]][]): string[][] {
  return Object.entries(object).flatMap(([name, value]) => {
    const whole = path + name;
    if (Array.isArray(value) && value.some((one) => typeof one === 'object')) {
      lists.push([whole, value as object[]]);
      return [];
    }
    const isInner = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isInner ? flatten(value as object, `${whole}.`, lists) : [readableField(whole, value)];
  });
}

function readableRow(entry: object): Record<string, Cell> {
  return Object.fromEntries(Object.entries(entry).map(([name, value]) => readableField(name, value)));
}

/** A field with milliseconds as a time or a duration, without the unit in its name; another field as it is. */
function readableField(name: string, value: unknown): [string, string] {
  if (typeof value !== 'number' || !name.endsWith('Ms')) return [name, formatCell(value)];
  const isTime = /(At|Until|since)Ms$/i.test(name);
  return [name.slice(0, -2), isTime ? formatTime(value) : formatDuration(value)];
}

/** Shortens the widest cells until a row fits the terminal. */
function fit(rows: string[][]): string[][] {
  const widths = rows[0]!.map((_, at) => Math.max(...rows.map((row) => row[at]!.length)));
  const room = layout.columns - GAP * (widths.length - 1);
  for (let sum = add(widths); sum > room; sum = add(widths)) {
    const widest = widths.indexOf(Math.max(...widths));
    if (widths[widest]! <= MIN_WIDTH) break;
    widths[widest]! -= 1;
  }
  return rows.map((row) => row.map((text, at) => shorten(text, widths[at]!)));
}

function add(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}

/** Leaves the middle of a text out: ids often differ at their ends. */
function shorten(text: string, width: number): string {
  if (text.length <= width) return text;
  const tail = Math.floor((width - 1) / 2);
  return `${text.slice(0, width - 1 - tail)}…${text.slice(text.length - tail)}`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** Formats milliseconds as a duration with its two largest units, as people write it. */
export function formatDuration(ms: number | undefined): string {
  if (ms === undefined) return '-';
  const at = UNITS.findIndex(([, unit]) => ms >= unit);
  if (at < 0) return `${Math.floor(ms)}ms`;
  const [name, size] = UNITS[at]!;
  const [nextName, nextSize] = UNITS[at + 1] ?? ['', Infinity];
  const next = Math.floor((ms % size) / nextSize);
  return `${Math.floor(ms / size)}${name}${next > 0 ? `${next}${nextName}` : ''}`;
}

/** Formats milliseconds since 1970 as a point in time, with its zone. */
export function formatTime(ms: number | undefined): string {
  return ms === undefined ? '-' : new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

/**
 * Escapes control characters as in JSON, so that a text cannot control the terminal. JSON stays the same.
 */
export function printable(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]/gu, (control) => `\\u${control.codePointAt(0)!.toString(16).padStart(4, '0')}`);
}

function formatCell(value: Cell): string {
  if (value === undefined || value === null) return '-';
  const isList = Array.isArray(value) && value.every((one) => typeof one !== 'object');
  const text = isList ? value.join(', ') : typeof value === 'object' ? JSON.stringify(value) : String(value);
  if (text === '') return '-';
  // A line end in a cell would start another row.
  return printable(text).replaceAll('\n', '\\n');
}
