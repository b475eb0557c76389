import { type AdminClient, readData, iteratePages, type Schemas } from '@broomwagon/admin-client';
import { nowMs } from '../../live/server-clock';
import type { Round } from '../use-rounds';
import { buildHistory, type RoundHistory } from './bars';

interface JobPath {
  pool: string;
  job: string;
}

/** Data of a round that have been read so far. */
export interface RoundReading extends JobPath, Pick<Round, 'roundId'> {
  events: Schemas['PoolEvent'][];
  missingEvents: number;
  /** Cursor after the last event that was read, where the next read starts. */
  position?: number;
  history: RoundHistory;
}

/** Reads the events of a round since `before`, and the requests that run now. */
export async function readRound(
  client: AdminClient,
  path: JobPath,
  { roundId, openedAtMs, completedAtMs }: Round,
  before: RoundReading | undefined,
  signal: AbortSignal,
): Promise<RoundReading> {
  const isSame = before?.pool === path.pool && before.job === path.job && before.roundId === roundId;
  const known = isSame ? before : undefined;
  if (known && isSettled(known.events)) return known;
  const events = known === undefined ? [] : [...known.events];
  let { missingEvents = 0, position } = known ?? {};
  const route = '/api/v1/pools/{pool}/jobs/{job}/rounds/{roundId}/timeline';
  const pages = iteratePages((cursor: number | undefined = position) =>
    readData(client.GET(route, { params: { path: { ...path, roundId }, query: { cursor } }, signal })),
  );
  for await (const page of pages) {
    events.push(...page.events);
    missingEvents += page.missingEvents;
    ({ position = position } = page);
  }
  const running = isSettled(events) ? [] : await readRequests(client, path, roundId, signal);
  const lastMs = events.reduce((last, { atMs }) => Math.max(last, atMs), 0);
  const readAtMs = Math.max(lastMs, nowMs());
  const history = buildHistory({ openedAtMs, completedAtMs }, events, running, readAtMs, missingEvents);
  return { ...path, roundId, events, missingEvents, position, history };
}

/** Whether the round is settled, so that no attempt of the round runs any more. */
function isSettled(events: readonly Schemas['PoolEvent'][]): boolean {
  return events.some(({ type }) => type === 'round.settled');
}

async function readRequests(
  client: AdminClient,
  { pool, job }: JobPath,
  roundId: string,
  signal: AbortSignal,
): Promise<Schemas['RequestStatus'][]> {
  const running: Schemas['RequestStatus'][] = [];
  const pages = iteratePages((cursor?: string) => {
    const params = { path: { pool }, query: { job, roundId, cursor } };
    return readData(client.GET('/api/v1/pools/{pool}/requests', { params, signal }));
  });
  for await (const page of pages) running.push(...page.requests);
  return running;
}
