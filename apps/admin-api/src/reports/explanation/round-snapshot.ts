import type { JobId, RequestStatus, RoundId, RoundStatus, UnreadRoundPart, WeightSync } from '@broomwagon/contracts';
import type { PoolReading } from '../overview';

/** Answers about a round and its pool, read together. */
export interface RoundSnapshot extends PoolReading {
  job: JobId;
  roundId: RoundId;
  /** Absent if the coordinator has not answered. */
  round?: RoundStatus;
  /** Median time of earlier rounds of the same kind, milliseconds; absent without such rounds. */
  medianMs?: number;
  /** Requests of the open round that have not ended; absent if they were not read. */
  requests?: readonly RequestStatus[];
  /** Whether there are more requests than were read. */
  isPartial?: boolean;
  /** The change of weights that is under way; absent if there is none, or if it was not read. */
  sync?: WeightSync;
  /** Parts beyond the overview that have not answered. */
  unread: readonly UnreadRoundPart[];
}

export function isOpen({ state }: Pick<RoundStatus, 'state'>): boolean {
  return state === 'opening' || state === 'open';
}

/** Time since the opening of a round, until its completion if it is completed, milliseconds. */
export function computeAge({ openedAtMs, completedAtMs }: RoundStatus, atMs: number): number {
  return Math.max(0, (completedAtMs ?? atMs) - openedAtMs);
}

/** The requests of a state. */
export function listOfState(
  { requests = [] }: Pick<RoundSnapshot, 'requests'>,
  state: RequestStatus['state'],
): readonly RequestStatus[] {
  return requests.filter((request) => request.state === state);
}

/** Places of ready servers, and how many of them are taken. Undefined without a list of servers. */
export function countPlaces({ servers }: Pick<RoundSnapshot, 'servers'>) {
  if (servers === undefined) return undefined;
  const ready = servers.filter(({ state }) => state === 'ready');
  const sum = (read: (server: (typeof ready)[0]) => number) => ready.reduce((total, one) => total + read(one), 0);
  return {
    servers: ready.length,
    places: sum(({ capacity }) => capacity),
    usedPlaces: sum(({ capacity, inflight }) => Math.min(capacity, inflight)),
  };
}
