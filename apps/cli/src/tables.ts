import Table from 'cli-table3';

/** Value of a cell. Undefined and empty texts are shown as `-`, objects as JSON. */
export type Cell = unknown;

const BORDERS = ['top', 'bottom', 'left', 'right', 'mid', 'middle'].flatMap((name) =>
  ['', '-mid', '-left', '-right'].map((end) => [name + end, '']),
);

function plainTable(head: string[], cells: Cell[][]): string {
  const table = new Table({
    head,
    chars: Object.fromEntries(BORDERS) as Record<string, string>,
    style: { 'padding-left': 0, 'padding-right': 2, head: [], border: [], compact: true },
  });
  table.push(...cells.map((row) => row.map(formatCell)));
  const lines = table.toString().split('\n');
  return lines.map((line) => line.trimEnd()).join('\n');
}

/** Formats rows as a table with a column for each field. */
export function formatTable(rows: readonly Record<string, Cell>[]): string {
  if (rows.length === 0) return '(none)';
  const names = Object.keys(rows[0]!);
  return plainTable(
    names.map((name) => name.toUpperCase()),
    rows.map((row) => names.map((name) => row[name])),
  );
}

/** Formats an object with one field on each line. */
export function formatFields(object: object): string {
  return plainTable([], Object.entries(object));
}

/** Formats milliseconds as a duration, as people write it. */
export function formatDuration(ms: number | undefined): string {
  if (ms === undefined) return '-';
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
  ] as const;
  const [name, size] = units.find(([, unit]) => ms >= unit) ?? ['ms', 1];
  return `${Math.floor(ms / size)}${name}`;
}

/** Formats milliseconds since 1970 as a point in time. */
export function formatTime(ms: number | undefined): string {
  return ms === undefined ? '-' : new Date(ms).toISOString();
}

/**
 * Escapes control characters as in JSON, so that a text cannot control the terminal. JSON stays the same.
 */
export function printable(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]/gu, (control) => `\\u${control.codePointAt(0)!.toString(16).padStart(4, '0')}`);
}

function formatCell(value: Cell): string {
  if (value === undefined || value === null || value === '') return '-';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  // A line end in a cell would start another row.
  return printable(text).replaceAll('\n', '\\n');
}
