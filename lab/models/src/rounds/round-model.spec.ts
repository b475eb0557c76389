import type { TailPolicy } from '@broomwagon/contracts';
import fc from 'fast-check';
import { describe, expect, inject, it, vi } from 'vitest';
import { findPolicyFault, planRound } from '@broomwagon/policies';
import { anyTailPolicy, decisions } from './interleave.fixture';
import { RoundModel } from './round-model';
import { type RoundAct, RoundWorld } from './round-world.fixture';

/** Number of data sets per property. */
const RUNS = 100 * inject('runsFactor');
vi.setConfig({ testTimeout: 120_000 + RUNS * 200 });

function planShortRound(model: RoundModel, policy: TailPolicy, remainingGroups: number) {
  return planRound(model.progress(), { groupsPerStep: 2, remainingGroups, policy }) as ReturnType<typeof planRound> & {
    kind: 'short';
  };
}

/** Runs data sets of any kind. If `without` names failures, no drawn policy bounds the returns of workers. */
async function runs(check: (world: RoundWorld) => void, without: readonly RoundAct[]): Promise<void> {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 24 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 2, max: 6 }),
      anyTailPolicy,
      decisions,
      async (groups, samples, groupsPerStep, drawn, decide) => {
        const policy = without.includes('fail') ? { ...drawn, maxReturns: undefined } : drawn;
        fc.pre(findPolicyFault(policy, groupsPerStep) === undefined);
        const world = new RoundWorld({ groups, samples, groupsPerStep, policy }, decide);
        await world.run(without);
        check(world);
      },
    ),
    { numRuns: RUNS },
  );
}

describe('the model of rounds, under every policy and bound, with workers that do anything in any order', () => {
  it('trains every group exactly once, whole, within its bounds, in exactly ceil(N / G) steps', async () => {
    await runs(
      ({ setting, trained, steps, model }) => {
        expect(trained.size).toBe(setting.groups);
        const most = Math.ceil(setting.groups / setting.groupsPerStep);
        if (setting.policy.equalRewards === 'replace') expect(steps).toBeLessThanOrEqual(most);
        else expect(steps).toBe(most);
        expect(model.longtail.size).toBe(0);
        expect(model.groups.settling).toBe(0);
      },
      ['fail', 'dropGroup', 'stopSample', 'expireRound', 'reconcile', 'requeue', 'restore'],
    );
  });

  it('ends every group exactly once, trained, failed or dropped, whatever fails or is given up', async () => {
    await runs(({ setting, trained, model }) => {
      const { excluded, failed, dropped } = model.groups;
      expect(trained.size).toBe(model.groups.trained + excluded);
      expect(trained.size + failed + dropped).toBe(setting.groups);
      expect(model.longtail.size).toBe(0);
      expect(model.groups.settling).toBe(0);
    }, []);
  });

  it('takes a group that was cut maxCuts times first, keeps a place for it, and waits for it', () => {
    const model = new RoundModel();
    const policy: TailPolicy = { name: 'drip', overProvision: 1.5, dripGroups: 1, maxCuts: 1 };
    model.open({ ...planShortRound(model, policy, 6), policy, weightVersion: 0 }, 0);
    model.submit(
      [1, 2, 3].map((n) => ({ groupId: `g${n}`, samples: 1 })),
      0,
    );
    const [slow, ...others] = model.claim(3, 'w');
    model.save(slow!, 1, { attempt: 1, weightVersion: 0, tokens: 5 });
    for (const request of others) model.complete(request, 1, { attempt: 1, weightVersion: 0, tokens: 3 }, 1);
    expect(model.round!.state).toBe('completed');
    for (const { request, attempt } of model.cut()) model.fail(request, attempt, {}, 2);
    expect(slow!.group).toMatchObject({ state: 'unfinished', cuts: 1, pinStep: 2, tokens: 5 });
    model.close();

    model.open({ ...planShortRound(model, policy, 3), policy, weightVersion: 1 }, 3);
    expect(model.round).toMatchObject({ takenGroups: 1, reserved: 1 });
    model.submit(
      [4, 5].map((n) => ({ groupId: `g${n}`, samples: 1 })),
      3,
    );
    const [again, ...fresh] = model.claim(3, 'w');
    expect(again).toBe(slow);
    for (const request of fresh) model.complete(request, 1, undefined, 4);
    // The first new group has the free place, the second is held.
    expect(model.round).toMatchObject({ state: 'open', held: new Set([fresh[1]!.group]) });
    model.complete(again!, 2, { attempt: 2, weightVersion: 1, tokens: 2 }, 5);
    expect(model.round!.state).toBe('completed');
    expect(model.round!.accepted).toEqual([fresh[0]!.group, slow!.group]);
    expect(slow!.segments.map(({ tokens }) => tokens)).toEqual([5, 2]);
    model.cut();
    expect(model.longtail).toMatchObject({ size: 1, finishedGroups: 1 });
  });

  it('drives hundreds of thousands of requests in seconds of CPU time', () => {
    const model = new RoundModel();
    const policy: TailPolicy = { name: 'resume', overProvision: 1.25, sampleOverProvision: 1.25, maxCuts: 3 };
    const groupsPerStep = 2_048;
    let submitted = 0;
    const before = process.cpuUsage();
    for (let step = 0; step < 8; step++) {
      const plan = planRound(model.progress(), { groupsPerStep, remainingGroups: 1_000_000, policy });
      model.open({ ...plan, kind: plan.kind as 'short', policy, weightVersion: plan.step }, plan.step);
      model.submit(
        Array.from({ length: plan.newGroups }, () => ({ groupId: `g${submitted++}`, samples: 16 })),
        plan.step,
      );
      while (model.round!.state === 'open') {
        for (const request of model.claim(64, 'w')) {
          const segment = { attempt: request.attempt, weightVersion: plan.step, tokens: 7 };
          model.save(request, request.attempt, segment);
          if (request.index % 7 !== 6) model.complete(request, request.attempt, segment, plan.step);
        }
        for (const request of model.held('w')) model.complete(request, request.attempt, undefined, plan.step);
      }
      for (const { request, attempt } of model.cut()) model.fail(request, attempt, {}, plan.step);
      model.close();
      model.fold();
    }
    expect(model.requestCounts.submitted).toBeGreaterThan(300_000);
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(10);
  });
});
