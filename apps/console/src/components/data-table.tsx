import { Text, UnstyledButton } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useEffect, useMemo, useRef } from 'react';
import { useParameter } from '../address/route';
import classes from './data-table.module.css';

export interface Column<Row> {
  title: string;
  /**
   * Value of a cell, by which rows are sorted. An undefined value is shown as a dash. Absent: no sorting.
   */
  value?(row: Row): string | number | undefined;
  format?(value: number): string;
  /** Contents of a cell; default: the value as text. */
  cell?(row: Row): ReactNode;
  align?: 'right';
  width?: number | string;
}

interface DataTableProps<Row> {
  /** Description of the rows, for screen readers. */
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  toKey(row: Row): string;
  /** Text that is shown if there are no rows. */
  empty: string;
  /** Key of the row that is marked, and scrolled into view when it changes. */
  marked?: string;
  /** Parameter of the address with the sorting; tables of one page need different ones. */
  sortName?: string;
  /** Greatest height, pixels. */
  height?: number;
}

const ROW_HEIGHT = 36;
const byText = new Intl.Collator('en', { numeric: true });

/** A table of any length, since only visible rows are in the document. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, columns, rows, toKey: keyOf, empty, marked, sortName = 'sort', height = 520 } = props;
  const [given, setGiven] = useParameter(sortName, '');
  const sorting = useMemo(() => parseSorting(given), [given]);
  const frame = useRef<HTMLDivElement>(null);
  const sorted = useMemo(() => {
    const column = columns.find(({ title }) => title === sorting?.title);
    if (sorting === undefined || column?.value === undefined) return rows;
    const direction = sorting.isDescending ? -1 : 1;
    return rows.toSorted((one, other) => direction * compare(column.value!(one), column.value!(other)));
  }, [rows, columns, sorting]);
  const virtualizer = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: (index) => keyOf(sorted[index]!),
    overscan: 8,
  });
  const items = virtualizer.getVirtualItems();
  const before = items.length === 0 ? 0 : items[0]!.start;
  const after = virtualizer.getTotalSize() - (items.length === 0 ? 0 : items.at(-1)!.end);
  const sortBy = (title: string) => setGiven(sorting?.title === title && !sorting.isDescending ? `-${title}` : title);
  const sortedRows = useRef(sorted);
  useEffect(() => {
    sortedRows.current = sorted;
  });
  useEffect(() => {
    const index = sortedRows.current.findIndex((row) => keyOf(row) === marked);
    if (index >= 0) virtualizer.scrollToIndex(index);
    // Only a new mark scrolls, not each new list of rows.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [marked]);

  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a keyboard scrolls it
    <div
      ref={frame}
      className={classes.frame}
      style={{ maxHeight: height }}
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      <table className={classes.table} aria-rowcount={sorted.length + 1}>
        <thead>
          <tr>
            {columns.map(({ title, value, align, width }) => (
              <th
                key={title}
                scope="col"
                style={{ width, textAlign: align }}
                aria-sort={ariaSort(title, sorting, value)}
              >
                {value === undefined ? (
                  title
                ) : (
                  <UnstyledButton className={classes.sort} onClick={() => sortBy(title)}>
                    {title}
                    <span aria-hidden="true">
                      {sorting?.title === title ? (sorting.isDescending ? ' ▾' : ' ▴') : ''}
                    </span>
                  </UnstyledButton>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <tr style={{ height: before }} aria-hidden="true" />}
          {items.map(({ index, key }) => (
            <tr
              key={key as string}
              aria-rowindex={index + 2}
              style={{ height: ROW_HEIGHT }}
              data-marked={key === marked || undefined}
            >
              {columns.map((column) => (
                <td key={column.title} style={{ textAlign: column.align }}>
                  {renderCell(column, sorted[index]!)}
                </td>
              ))}
            </tr>
          ))}
          {after > 0 && <tr style={{ height: after }} aria-hidden="true" />}
        </tbody>
      </table>
      {rows.length === 0 && (
        <Text c="dimmed" size="sm" p="md" ta="center">
          {empty}
        </Text>
      )}
    </div>
  );
}

function renderCell<Row>({ cell, value, format }: Column<Row>, row: Row): ReactNode {
  if (cell !== undefined) return cell(row);
  const found = value?.(row);
  return typeof found === 'number' && format !== undefined ? format(found) : (found ?? '–');
}

/** Orders two values. An absent value comes first. */
function compare(one?: string | number, other?: string | number): number {
  if (one === undefined || other === undefined) return Number(one !== undefined) - Number(other !== undefined);
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  return byText.compare(String(one), String(other));
}

interface Sorting {
  title: string;
  isDescending: boolean;
}

/** Parses a title, which a minus precedes for the descending order. */
function parseSorting(given: string): Sorting | undefined {
  if (given === '') return undefined;
  return given.startsWith('-') ? { title: given.slice(1), isDescending: true } : { title: given, isDescending: false };
}

function ariaSort(title: string, sorting: Sorting | undefined, value: unknown) {
  if (value === undefined) return undefined;
  if (sorting?.title !== title) return 'none';
  return sorting.isDescending ? 'descending' : 'ascending';
}
