import type { RequestStatus, RoundStatus } from '@broomwagon/contracts';
import { FINE, server } from '../pool-numbers.fixture';
import type { RoundSnapshot } from './round-snapshot';

export const NOW_MS = FINE.atMs;
export const ROUND = {
  roundId: 'r1',
  step: 7,
  kind: 'short',
  state: 'open',
  policy: { name: 'wait' },
  neededGroups: 8,
  acceptedGroups: 6,
  newGroups: 8,
  takenGroups: 0,
  roundGroups: 8,
  failedGroups: 0,
  droppedGroups: 0,
  shortfallGroups: 0,
  pinnedGroups: 0,
  returnedAttempts: {},
  settled: false,
  openedAtMs: NOW_MS - 60_000,
} as Partial<RoundStatus> as RoundStatus;
export const request = (id: string, more: Partial<RequestStatus> = {}): RequestStatus => ({
  requestId: `job/${id}`,
  state: 'running',
  attempt: '1-a',
  failures: 0,
  tokenCount: 500,
  maxTokens: 1_000,
  tokensPerSecond: 50,
  tokensAgeMs: 1_000,
  workerId: 'w',
  serverId: 'a',
  ageMs: 10_000,
  ...more,
});
/** Two of eight groups are missing; each has a running request. Nothing is wrong. */
export const RUNNING: RoundSnapshot = {
  job: 'job',
  roundId: 'r1',
  numbers: FINE,
  servers: [server('a', { inflight: 2 }), server('b')],
  round: ROUND,
  medianMs: 50_000,
  requests: [request('g6/0'), request('g7/0', { ageMs: 20_000, tokenCount: 100 })],
  unread: [],
};
/** The fields of a snapshot with a changed round. */
export const withRound = (round: Partial<RoundStatus>): Partial<RoundSnapshot> => ({ round: { ...ROUND, ...round } });
