import Table from 'cli-table3';

// Lines of plain characters survive a copy into a mail.
const LINES = { mid: '-', 'mid-mid': '+', middle: '  ' };
const NO_LINES = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '' };
const NO_CORNERS = { 'bottom-left': '', 'bottom-right': '', left: '', 'left-mid': '', right: '', 'right-mid': '' };

/** A table in plain text: the first column to the left, numbers to the right. */
export function plainTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({
    head: [...head],
    colAligns: head.map((_, index) => (index === 0 ? 'left' : 'right')),
    chars: { ...NO_LINES, ...NO_CORNERS, ...LINES },
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 0 },
  });
  table.push(...rows.map((row) => [...row]));
  return table.toString();
}
