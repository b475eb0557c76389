import { expect, it } from 'vitest';
import { rebalanceTrigger, type ServerView } from './trigger';

const tiers = [8, 4, 2];
const view = (serverId: string, inflight: number, parts: Partial<ServerView> = {}): ServerView => ({
  serverId,
  epoch: 'e1',
  state: 'ready',
  inflight,
  ...parts,
});
const load = (waiting: number, preemptions = 0) => ({ load: { running: 1, waiting, preemptions, ageMs: 0 } });
const trigger = (before: ServerView[] | undefined, now: ServerView[]) => rebalanceTrigger(before, now, tiers);

it('fires once when a tier boundary can be crossed', () => {
  const before = [view('a', 8), view('b', 8)];
  expect(trigger(undefined, before)).toBeUndefined();
  // Seven and one could be four each; six and one as well, but that is known.
  expect(trigger(before, [view('a', 7), view('b', 1)])).toBe('tier');
  expect(trigger([view('a', 7), view('b', 1)], [view('a', 6), view('b', 1)])).toBeUndefined();
  expect(trigger([view('a', 6), view('b', 1)], [view('a', 6), view('b', 2)])).toBeUndefined();
});

it('fires for servers that run dry, are added, fail, preempt or queue', () => {
  const before = [view('a', 4), view('b', 1)];
  expect(trigger(before, [view('a', 4), view('b', 0)])).toBe('tier');
  expect(trigger([view('a', 2), view('b', 1)], [view('a', 2), view('b', 0)])).toBe('idle');
  expect(trigger([view('a', 1), view('b', 1)], [view('a', 1), view('b', 0)])).toBeUndefined();
  expect(trigger(before, [...before, view('c', 0)])).toBe('new-server');
  expect(trigger(before, [view('a', 4), view('b', 1, { epoch: 'e2' })])).toBe('new-server');
  expect(trigger(before, [view('a', 4), view('b', 0, { state: 'failed' })])).toBe('failure');
  expect(trigger(before, [view('a', 4)])).toBe('failure');
  expect(trigger([view('a', 4, load(0, 3))], [view('a', 4, load(0, 4))])).toBe('preemption');
  expect(trigger([view('a', 4, load(0))], [view('a', 4, load(2))])).toBe('waiting');
  expect(trigger([view('a', 4, load(1))], [view('a', 4, load(2))])).toBeUndefined();
});

it('fires for a drain as long as requests run on the server', () => {
  const draining = [view('a', 1, { state: 'draining' }), view('b', 0)];
  expect(trigger(undefined, draining)).toBe('drain');
  expect(trigger(draining, draining)).toBe('drain');
  expect(trigger(draining, [view('a', 0, { state: 'draining' }), view('b', 1)])).toBeUndefined();
});
