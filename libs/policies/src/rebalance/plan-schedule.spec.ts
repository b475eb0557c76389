import { expect, it } from 'vitest';
import { PlanSchedule, type ScheduleSettings } from './plan-schedule';
import type { ServerView } from './trigger';

const settings: ScheduleSettings = {
  tiers: [8, 4],
  stepBaseSeconds: 0.01,
  stepPerSequenceSeconds: 0.01,
  planIntervalMs: 60_000,
  planIntervalSteps: 0,
};
const view = (serverId: string, inflight: number, parts: Partial<ServerView> = {}): ServerView => ({
  serverId,
  epoch: 'e1',
  state: 'ready',
  inflight,
  ...parts,
});

it('reports the trigger until a plan is made, and plans at the latest after its interval', () => {
  const schedule = new PlanSchedule(0);
  expect(schedule.look([view('a', 4), view('b', 4)], settings, 0)).toBeUndefined();
  const uneven = [view('a', 8), view('b', 0)];
  expect(schedule.look(uneven, settings, 1_000)).toBe('tier');
  expect(schedule.look(uneven, settings, 2_000)).toBe('tier');
  schedule.planned(2_000);
  expect(schedule.look(uneven, settings, 61_999)).toBeUndefined();
  expect(schedule.look(uneven, settings, 62_000)).toBe('interval');
});

it('counts decode steps by the tier of the fullest server, and then heeds nothing but a drain', () => {
  const published = { ...settings, planIntervalSteps: 1_000 };
  const schedule = new PlanSchedule(0);
  expect(schedule.look([view('a', 0), view('b', 0)], published, 50_000)).toBeUndefined();
  // A step at tier 8 takes 0.09 s: 500 of them; at tier 4 0.05 s.
  expect(schedule.look([view('a', 8), view('b', 0)], published, 95_000)).toBeUndefined();
  expect(schedule.look([view('a', 3), view('b', 0)], published, 119_000)).toBeUndefined();
  expect(schedule.look([view('a', 3), view('b', 0)], published, 120_001)).toBe('interval');
  schedule.planned(120_001);
  expect(schedule.look([view('a', 8), view('b', 0)], published, 120_100)).toBeUndefined();
  expect(schedule.look([view('a', 8, { state: 'draining' }), view('b', 0)], published, 120_200)).toBe('drain');
});
