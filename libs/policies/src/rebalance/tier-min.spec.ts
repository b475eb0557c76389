import { describe, expect, it } from 'vitest';
import { aRequest, aServer } from './snapshot.fixture';
import { balancingTasks, planTierMin } from './tier-min';

const running = (count: number, blockUsage = 0.5) => ({ running: count, waiting: 0, blockUsage });
const pairs = (tasks: ReturnType<typeof balancingTasks>) =>
  tasks.map(({ fromRank, toRank, count, needsKvCache }) => [fromRank, toRank, count, needsKvCache]);

describe('the published algorithm', () => {
  it('lowers the maximum tier to the smallest that the mean fits', () => {
    expect(pairs(balancingTasks([running(20), running(10), running(12), running(16)]))).toEqual([[0, 1, 4, true]]);
    // A mean of 14.5 fits tier 16; the third has ten places, but cache for six only.
    expect(pairs(balancingTasks([running(28), running(10), running(6), running(14)]))).toEqual([
      [0, 1, 6, true],
      [0, 2, 6, true],
    ]);
  });

  it('takes donors in turn over the receivers, so that flows are even', () => {
    expect(pairs(balancingTasks([running(18), running(18), running(8), running(10)]))).toEqual([
      [0, 2, 2, true],
      [1, 3, 2, true],
    ]);
  });

  it('moves waiting requests first, without a cache, to the least loaded', () => {
    const waiting = { running: 16, waiting: 3, blockUsage: 0.95 };
    expect(pairs(balancingTasks([waiting, running(6), running(7)]))).toEqual([
      [0, 1, 2, false],
      [0, 2, 1, false],
    ]);
  });

  it('moves no running request while one still waits', () => {
    const waiting = { running: 16, waiting: 9, blockUsage: 0.95 };
    expect(pairs(balancingTasks([waiting, running(20), running(15, 0.5), running(4)]))).toEqual([
      [0, 2, 1, false],
      [0, 3, 4, false],
    ]);
  });

  it('bounds the requests that a receiver takes by its present cache', () => {
    // 8 * (1 - 0.75) / 0.75 = 2.67: two fit.
    expect(pairs(balancingTasks([running(18), running(8, 0.75)]))).toEqual([[0, 1, 2, true]]);
  });

  it('bounds the target by the largest tier and by the most running requests of an engine', () => {
    expect(pairs(balancingTasks([running(80), running(40)]))).toEqual([[0, 1, 16, true]]);
    expect(pairs(balancingTasks([running(80), running(40)], { maxRunning: 50 }))).toEqual([[0, 1, 10, true]]);
    expect(balancingTasks([])).toEqual([]);
  });
});

describe('faults of the published rule', () => {
  it('D1: its victims are the newest, whatever they have cost and have to go', () => {
    const requests = [
      aRequest('nearly-nothing-made', { madeTokens: 10, remainingTokens: 30_000 }),
      ...Array.from({ length: 4 }, (_, index) => aRequest(`older-${index}`)),
      aRequest('nearly-done', { madeTokens: 30_000, remainingTokens: 1 }),
    ];
    const plan = planTierMin({ servers: [aServer('a', requests), aServer('b', 0)] }, { tiers: [8, 5] });
    expect(plan.moves.map((move) => move.requestId)).toEqual(['nearly-done']);
  });

  it('D2: it moves a part though the maximum tier stays', () => {
    const plan = planTierMin({
      servers: [aServer('a', 20, { kvUse: 0.5 }), aServer('b', 10, { kvUse: 0.8 }), aServer('c', 15, { kvUse: 0.8 })],
    });
    expect(plan).toMatchObject({ tierBefore: 32, tierAfter: 32 });
    expect(plan.moves).not.toHaveLength(0);
  });

  it('D3: an idle rank with leftover blocks never receives', () => {
    expect(balancingTasks([running(20), running(0, 0.1)])).toEqual([]);
    expect(balancingTasks([running(20), running(0, 0)])).not.toEqual([]);
  });

  it('D4: a rank with one waiting request neither gives running ones nor receives', () => {
    const tasks = balancingTasks([{ running: 60, waiting: 1, blockUsage: 0.1 }, running(2, 0.01)]);
    expect(pairs(tasks)).toEqual([[0, 1, 1, false]]);
    expect(balancingTasks([running(60), { running: 2, waiting: 1, blockUsage: 0.1 }])).toEqual([]);
  });

  it('D5: the mean counts waiting requests, the room of a receiver only running ones', () => {
    // Ten more wait on the second than the target of 16 holds; only the first is asked for room.
    const tasks = balancingTasks([running(2), { running: 4, waiting: 26, blockUsage: 0.1 }]);
    expect(pairs(tasks)).toEqual([[1, 0, 2, false]]);
  });

  it('D6: the target is one for all ranks, so all must stop and report their state before any may move', () => {
    expect(pairs(balancingTasks([running(20), running(10)]))).toEqual([[0, 1, 4, true]]);
    expect(balancingTasks([running(20), running(10), running(28)])).toEqual([]);
  });

  it('D7: a receiver takes requests that fit now, though it cannot hold their growth', () => {
    const grows = Array.from({ length: 6 }, (_, index) => aRequest(`r${index}`, { remainingTokens: 30_000 }));
    const small = aServer('b', [aRequest('b0'), aRequest('b1')], { kvCapacityTokens: 10_000, kvUse: 0.2 });
    const plan = planTierMin({ servers: [aServer('a', grows), small] }, { tiers: [8, 4] });
    expect(plan.moves).toHaveLength(2);
  });

  it('D8: the rank under most pressure gives nothing', () => {
    expect(balancingTasks([running(30, 0.9), running(2, 0.1)])).toEqual([]);
  });

  it('D9: a request may be moved back at the next check', () => {
    const often = (id: string) => aRequest(id, { moves: 9, sinceMoveMs: 1 });
    const servers = [
      aServer(
        'a',
        Array.from({ length: 6 }, (_, index) => often(`r${index}`)),
      ),
      aServer('b', 2),
    ];
    expect(planTierMin({ servers }, { tiers: [8, 4] }).moves).toHaveLength(2);
  });
});
