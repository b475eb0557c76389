import type { Schemas } from '@broomwagon/admin-client';
import type { Column } from '../../components/data-table';

type Move = Schemas['MoveStatus'];
type Times = NonNullable<Move['times']>;

const hundredths = (seconds: number): string => seconds.toFixed(2);
const phase = (title: string, name: keyof Times): Column<Move> => ({
  title: `${title}, s`,
  value: ({ times }) => times?.[name],
  format: (ms) => hundredths(ms / 1_000),
  align: 'right',
});

/** Columns of the moves of a plan. A move has times only after its first token. */
export const MOVE_COLUMNS: Column<Move>[] = [
  { title: 'Request', value: ({ requestId, leaseId }) => requestId ?? leaseId },
  { title: 'From', value: ({ fromServerId }) => fromServerId },
  { title: 'To', value: ({ toServerId }) => toServerId },
  { title: 'Why', value: ({ purpose }) => purpose },
  { title: 'Cost, s', value: ({ costSeconds }) => costSeconds, format: hundredths, align: 'right' },
  { title: 'Gain, s', value: ({ gainSeconds }) => gainSeconds, format: hundredths, align: 'right' },
  phase('Stop', 'stopMs'),
  phase('Place', 'placeMs'),
  phase('Resume', 'resumeMs'),
  phase('First token', 'firstTokenMs'),
  { title: 'State', value: ({ state, refusal }) => (refusal === undefined ? state : `${state}: ${refusal}`) },
];
