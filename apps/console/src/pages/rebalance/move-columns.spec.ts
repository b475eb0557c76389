import { expect, it } from 'vitest';
import { MOVE_COLUMNS } from './move-columns';

it('shows the time of each phase of a move, and no time before its first token', () => {
  const move = { requestId: 'r', toServerId: 'b', state: 'moved' as const };
  const times = { stopMs: 12, placeMs: 0, resumeMs: 3_456, firstTokenMs: 700 };
  const formatCells = (row: Parameters<NonNullable<(typeof MOVE_COLUMNS)[0]['value']>>[0]) =>
    Object.fromEntries(
      MOVE_COLUMNS.map(({ title, value, format }) => {
        const shown = value!(row);
        return [title, typeof shown === 'number' ? format!(shown) : shown];
      }),
    );
  expect(formatCells({ ...move, times })).toMatchObject({
    'Stop, s': '0.01',
    'Place, s': '0.00',
    'Resume, s': '3.46',
    'First token, s': '0.70',
    State: 'moved',
  });
  expect(formatCells(move)).toMatchObject({ 'Stop, s': undefined, 'First token, s': undefined });
});
