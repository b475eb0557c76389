import type { AdminClient, Schemas } from '@broomwagon/admin-client';
import { expect, it } from 'vitest';
import { readRound } from './read-round';

type Page = Pick<Schemas['RoundTimelineReply'], 'missingEvents' | 'cursor' | 'position'> & { events: string[] };

/** Serves these pages of a timeline, and no running requests. */
function serve(pages: Page[]) {
  const cursors: unknown[] = [];
  const get = (path: string, { params }: { params: { query: { cursor?: number } } }) => {
    const response = { ok: true, status: 200 };
    if (!path.endsWith('/timeline')) return { data: { requests: [] }, response };
    cursors.push(params.query.cursor);
    const { events, ...page } = pages.shift()!;
    return { data: { ...page, events: events.map((type, atMs) => ({ type, atMs })) }, response };
  };
  const client = { GET: async (...call: Parameters<typeof get>) => get(...call) } as unknown as AdminClient;
  const round = (roundId: string) => ({ roundId, openedAtMs: 1 }) as Schemas['RoundSummary'];
  const read = (before?: Awaited<ReturnType<typeof readRound>>, roundId = 'r1') =>
    readRound(client, { pool: 'p', job: 'j' }, round(roundId), before, new AbortController().signal);
  return { cursors, read };
}
const listTypes = ({ events }: Awaited<ReturnType<typeof readRound>>) => events.map(({ type }) => type);

it('reads on after the last event until the round is settled', async () => {
  const { cursors, read } = serve([
    { events: ['round.opened'], missingEvents: 1, cursor: 5 },
    { events: ['round.submitted'], missingEvents: 0, position: 7 },
    { events: [], missingEvents: 0, position: 7 },
    { events: ['round.completed', 'round.settled'], missingEvents: 2, position: 9 },
  ]);
  const first = await read();
  expect(listTypes(first)).toEqual(['round.opened', 'round.submitted']);
  const second = await read(first);
  const third = await read(second);
  expect(listTypes(third)).toEqual(['round.opened', 'round.submitted', 'round.completed', 'round.settled']);
  expect(third.history.missingEvents).toBe(3);
  expect(await read(third)).toBe(third);
  expect(cursors).toEqual([undefined, 5, 7, 7]);
});

it('begins with the first event of another round', async () => {
  const { cursors, read } = serve([
    { events: ['round.opened'], missingEvents: 0, position: 7 },
    { events: ['round.opened'], missingEvents: 0, position: 3 },
  ]);
  const other = await read(await read(), 'r2');
  expect(listTypes(other)).toEqual(['round.opened']);
  expect(cursors).toEqual([undefined, undefined]);
});
