import type { RoundStatus } from '@broomwagon/contracts';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { killAtRandom } from './system/chaos';
import { dataSet, findFaults } from './system/data-set';
import { TestSystem } from './system/test-system';

const GROUPS_PER_STEP = 12;
/** Every other group has a sample that is ten times as long as the others. */
const PROMPTS = dataSet(96, 4, 9);
const MAX_SPAN = 3;
/**
 * Share of the time of a step that another policy must save to replace `wait`: the 1.5 % that `auto` ignores, twice and
 * rounded up. On a slow machine calls take most of the time of a step, and no policy saves anything.
 */
const MIN_SAVED = 0.04;

let system: TestSystem;
beforeAll(async () => {
  system = await TestSystem.start({ balancers: 1, coordinators: 2, workers: 2, prompts: PROMPTS, speed: 80 });
});
afterAll(() => system?.stop());

it('chooses a policy from closed rounds, explains the choice, and keeps the bounds while coordinators are killed', async () => {
  const statuses = new Map<string, RoundStatus>();
  const chaos = killAtRandom(system, ['trainer-coordinator-1', 'trainer-coordinator-2'], inject('seed'));
  let trained;
  try {
    trained = await system.train('job-auto', PROMPTS, {
      groupsPerStep: GROUPS_PER_STEP,
      policy: 'auto',
      tail: { maxVersionSpan: MAX_SPAN },
      onStatus: (status) => statuses.set(status.roundId, status),
    });
  } finally {
    await chaos.stop();
  }
  expect(findFaults('job-auto', PROMPTS, trained.lines)).toEqual([]);
  expect(trained.steps).toHaveLength(PROMPTS.length / GROUPS_PER_STEP);

  const rounds = [...statuses.values()].sort((one, other) => one.step - other.step);
  const choices = rounds.map(({ choice }) => choice!.auto!);
  expect(choices[0]).toEqual({ policy: 'wait', reason: 'unknown', groups: 0, frontier: [] });
  // Three rounds have 36 groups.
  expect(choices[3]!.groups).toBe(3 * GROUPS_PER_STEP);
  for (const { policy, frontier } of choices.slice(3)) {
    if (policy !== 'wait') continue;
    const saved = frontier.filter(({ breaks }) => breaks.length === 0).map(({ speed }) => speed - 1);
    expect(Math.max(...saved), 'time that another policy saves').toBeLessThan(MIN_SAVED);
  }
  for (const [index, { policy, frontier, best }] of choices.entries()) {
    if (frontier.length === 0) continue;
    const { overProvision } = rounds[index]!.choice!;
    const row = frontier.find((one) => one.policy === policy && one.overProvision === overProvision)!;
    expect(row.breaks).toEqual([]);
    expect(
      frontier.find((one) => one.policy === best!.policy && one.overProvision === best!.overProvision),
    ).toBeDefined();
    expect(overProvision - (rounds[index - 1]?.choice?.overProvision ?? 1)).toBeLessThanOrEqual(1 / 8);
    expect(rounds[index]!.policy).toMatchObject({ name: 'auto', maxVersionSpan: MAX_SPAN });
  }
  const { summary } = await system.client.call(system.pool, 'job.ledger', { job: 'job-auto' as never });
  expect(summary.versionSpan.max).toBeLessThanOrEqual(MAX_SPAN);
  expect(summary.waste.share).toBeLessThan(0.01);
  await system.expectAtRest();
});
