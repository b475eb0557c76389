import { Logger } from '@nestjs/common';
import { BroomwagonError, type RoundSummary } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import type { RolloutEvent, RoundStore } from '@broomwagon/state';
import { afterEach, expect, it, vi } from 'vitest';
import { CoordinatorConfig } from '../coordinator.config';
import { RoundMetrics } from './round.metrics';
import { RoundReports } from './round-reports';

afterEach(() => void vi.restoreAllMocks());

function openReports(status: () => Promise<object>) {
  const lines: unknown[][] = [];
  for (const level of ['log', 'warn'] as const)
    vi.spyOn(Logger.prototype, level).mockImplementation((...parts: unknown[]) => void lines.push(parts));
  const metrics = new Metrics('c');
  const rounds = { status } as unknown as RoundStore;
  const roundMetrics = new RoundMetrics(metrics, new CoordinatorConfig());
  const reports = new RoundReports(rounds, roundMetrics);
  const happen = (atMs: number, type: string, body: object = {}) =>
    reports.note('p', {
      id: `${atMs}-0`,
      type,
      body: { job: 'j', roundId: 'r', sequence: 1, ...body },
    } as RolloutEvent);
  return { lines, happen, roundMetrics, text: () => metrics.text() };
}

it('logs and measures a round from its opening to its training', async () => {
  const { lines, happen, text } = openReports(async () => ({ openedAtMs: 1_000, neededGroups: 10, requestsDone: 20 }));
  await happen(1_000, 'round.opened', { step: 4, policy: 'resume', neededGroups: 10 });
  for (let group = 1; group <= 10; group += 1)
    await happen(1_000 + group * 6_000, 'round.progressed', { acceptedGroups: group, neededGroups: 10 });
  await happen(61_000, 'round.completed', { step: 4, acceptedGroups: 10, reason: 'accepted' });
  await happen(101_000, 'round.closed', { step: 4, trainedGroups: 10 });
  const ids = { pool: 'p', job: 'j', roundId: 'r', step: 4 };
  expect(lines).toMatchObject([
    [{ ...ids, policy: 'resume', neededGroups: 10 }, 'A round begins'],
    [{ ...ids, durationMs: 60_000, acceptedGroups: 10, requestsDone: 20 }, 'A round has its groups'],
    [{ ...ids, stepMs: 100_000, trainedGroups: 10 }, 'A step ends: the round is trained'],
  ]);
  expect((lines[1]![0] as { tailShare: number }).tailShare).toBeCloseTo(0.1);
  const page = await text();
  for (const outcome of ['opened', 'completed', 'trained'])
    expect(page).toContain(`rounds_total{pool="p",outcome="${outcome}",app="c"} 1`);
  expect(page).toContain('round_seconds_sum{app="c",pool="p"} 60');
  expect(page).toContain('step_seconds_sum{app="c",pool="p"} 100');
  expect(page).toMatch(/round_tail_ratio_sum\{app="c",pool="p"\} 0\.1/);
});

it('does not fail the relay of events when a round cannot be read', async () => {
  const { lines, happen } = openReports(async () => {
    throw new BroomwagonError('UNAVAILABLE', 'Redis is away');
  });
  await happen(1_000, 'round.completed');
  expect(lines).toMatchObject([[{ pool: 'p', job: 'j', roundId: 'r' }, 'A round was not reported']]);
});

it('shows the age of open rounds and the median of their kind, and removes both at the end', async () => {
  const { roundMetrics, text } = openReports(async () => ({}));
  const rounds = [
    { kind: 'short', state: 'open', openedAtMs: 90_000, acceptedGroups: 1, neededGroups: 4 },
    ...[10_000, 30_000, 20_000].map((ms) => ({ kind: 'short', state: 'closed', openedAtMs: 0, completedAtMs: ms })),
    ...[900_000, 900_000].map((ms) => ({ kind: 'long', state: 'closed', openedAtMs: 0, completedAtMs: ms })),
  ] as RoundSummary[];
  roundMetrics.show('p', [{ job: 'j', rounds }], 100_000);
  const page = await text();
  expect(page).toContain('open_round_seconds{pool="p",training_job="j",app="c"} 10');
  expect(page).toContain('round_median_seconds{pool="p",training_job="j",app="c"} 20');
  expect(page).toContain('open_round_accepted_ratio{pool="p",training_job="j",app="c"} 0.25');
  roundMetrics.show('p', [], 101_000);
  expect(await text()).not.toContain('training_job');
});
