import { describe, expect, it } from 'vitest';
import { FINE, RUNBOOKS, server } from '../pool-numbers.fixture';
import { explainRound } from './explain-round';
import { SCENARIOS, WITHOUT_A_ROW } from './round-scenarios.fixture';
import { NOW_MS, request, ROUND, RUNNING, withRound } from './round-snapshot.fixture';

describe('the explanation of an open round', () => {
  it('has no cause if nothing is wrong, and says what the round waits for and when it ends', () => {
    expect(explainRound(RUNNING)).toMatchObject({
      waitsFor: 'Waits for 2 of 8 groups: 2 requests run.',
      causes: [],
      ageMs: 60_000,
      // 900 tokens are left at 50 tokens/s, and the last report is a second old.
      end: {
        byMs: NOW_MS + 17_000,
        requestId: 'job/g7/0',
        reason: expect.stringMatching(/1,000 tokens.*100 so far, at 50 tokens\/s/),
      },
      requestsByState: { running: 2 },
      requests: [{ requestId: 'job/g7/0', serverId: 'a', workerId: 'w', ageMs: 20_000 }, { requestId: 'job/g6/0' }],
      runningLengths: [
        { fromTokens: 91, toTokens: 108, running: 1 },
        { fromTokens: 431, toTokens: 512, running: 1 },
      ],
      places: 16,
      usedPlaces: 2,
    });
  });

  it.each(Object.entries(SCENARIOS))('names the cause, with a runbook that exists: %s', (_, scenario) => {
    const { snapshot, runbook, message, sinceMs, end } = scenario;
    const { causes, ...reply } = explainRound({ ...RUNNING, ...snapshot });
    const cause = causes.find((one) => one.runbook === runbook && message.test(one.message));
    expect(cause, JSON.stringify(causes)).toBeDefined();
    if (sinceMs !== undefined) expect(cause!.sinceMs).toBe(sinceMs);
    expect(cause!.advice).not.toBe('');
    for (const one of causes) expect(RUNBOOKS).toContain(`\n### ${one.runbook}\n`);
    if (end !== undefined) expect(reply.end).toMatchObject({ reason: expect.stringMatching(end) });
    expect(reply.end?.byMs === undefined).toBe(end !== undefined || reply.state === undefined);
  });

  it('has a row for each runbook that is about a round', () => {
    const runbooks = [...RUNBOOKS.matchAll(/^### (\w+)$/gm)].map(([, name]) => name!);
    const covered = new Set([...Object.values(SCENARIOS).map(({ runbook }) => runbook), ...Object.keys(WITHOUT_A_ROW)]);
    expect(runbooks.filter((name) => !covered.has(name))).toEqual([]);
    expect([...covered].filter((name) => !runbooks.includes(name))).toEqual([]);
  });

  it('lists requests that get no tokens first, each with its problem', () => {
    const servers = [server('a'), server('b', { hung: true }), server('c', { state: 'failed' })];
    const requests = [
      request('g1/0', { ageMs: 90_000 }),
      request('g2/0', { serverId: 'b', ageMs: 1_000 }),
      request('g3/0', { serverId: 'c', ageMs: 2_000 }),
      request('g4/0', { serverId: 'gone', ageMs: 3_000 }),
      request('g5/0', { waiting: true, ageMs: 4_000 }),
      request('g6/0', { failures: 2, ageMs: 5_000 }),
    ];
    const { requests: listed } = explainRound({ ...RUNNING, servers, requests });
    expect(listed!.map(({ requestId, problem }) => [requestId, problem])).toEqual([
      ['job/g6/0', 'has failed before (2 times)'],
      ['job/g5/0', 'its engine sends no tokens'],
      ['job/g4/0', 'its server is gone'],
      ['job/g3/0', 'its server is failed'],
      ['job/g2/0', 'its server hangs'],
      ['job/g1/0', undefined],
    ]);
  });

  it('lists 16 of many requests, and counts all', () => {
    const requests = Array.from({ length: 40 }, (_, index) => request(`g${index}/0`));
    const { requests: listed, requestsByState } = explainRound({ ...RUNNING, requests });
    expect([listed!.length, requestsByState]).toEqual([16, { running: 40 }]);
  });

  it('ends at the deadline of the policy at the latest', () => {
    const policy = { name: 'wait' as const, deadlineMs: 65_000 };
    expect(explainRound({ ...RUNNING, ...withRound({ policy }) }).end).toEqual({
      byMs: NOW_MS + 5_000,
      reason: 'The deadline of the tail policy.',
    });
  });

  it('knows no end of a round whose requests were not all read', () => {
    expect(explainRound({ ...RUNNING, isPartial: true })).toMatchObject({
      isPartial: true,
      waitsFor: expect.stringContaining('of those that were read'),
      end: { reason: 'Unknown: the round has too many open requests.' },
    });
  });

  it('says which part has not answered', () => {
    const unread = [{ part: 'requests' as const, code: 'TIMEOUT', reason: 'late' }];
    expect(explainRound({ ...RUNNING, requests: undefined, unread })).toMatchObject({
      waitsFor: 'Waits for 2 of 8 groups; its requests cannot be read.',
      end: { reason: 'Unknown: the requests of the round cannot be read.' },
      unread,
    });
  });

  it.each([
    [
      'completed',
      'Nothing: the round has its groups, and the trainer has to train and close it. Requests that were cut',
    ],
    ['closed', 'Nothing: the round is closed.'],
    ['cancelled', 'Nothing: the round is cancelled.'],
  ] as const)('waits for nothing when the round is %s', (state, text) => {
    const round = { ...ROUND, state, completedAtMs: ROUND.openedAtMs + 30_000 };
    const { waitsFor, causes, end, ageMs } = explainRound({ ...RUNNING, round, numbers: { ...FINE, paused: true } });
    expect(waitsFor.startsWith(text)).toBe(true);
    expect([causes, end, ageMs]).toEqual([[], undefined, 30_000]);
  });
});
