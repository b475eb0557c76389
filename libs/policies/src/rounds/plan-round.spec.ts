import { LIMITS, TAIL_POLICIES, type TailPolicy } from '@broomwagon/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planRound } from './plan-round';

const policy = { name: 'resume', overProvision: 1.375 } as const;

describe('planRound', () => {
  it('launches overProvision times the groups that a short round needs', () => {
    const plan = planRound(
      { stepsTrained: 0, longtailGroups: 0, settlingGroups: 0 },
      { groupsPerStep: 64, remainingGroups: 1_319, policy },
    );
    expect(plan).toEqual({
      planId: '1-short-64-88-0',
      step: 1,
      kind: 'short',
      neededGroups: 64,
      newGroups: 88,
      takeGroups: 0,
    });
  });

  it('launches no more groups than a round may have', () => {
    const groupsPerStep = 40_000;
    const progress = { stepsTrained: 0, longtailGroups: 100, settlingGroups: 0 };
    const remainingByDomain = { math: 300_000, code: 300_000, chat: 300_000 };
    const domainQuotas = { math: 10_001, code: 3 };
    const policies: TailPolicy[] = [
      { name: 'resume', overProvision: 2 },
      { name: 'drip', overProvision: 2 },
      { name: 'fixed-concurrency', overProvision: 16, concurrency: 9 },
      { name: 'resume', overProvision: 2, domainQuotas },
      { name: 'drip', overProvision: 2, domainQuotas },
      { name: 'fixed-concurrency', overProvision: 16, concurrency: 9, domainQuotas },
    ];
    for (const policy of policies) {
      const { newGroups, takeGroups, newByDomain, neededGroups } = planRound(progress, {
        groupsPerStep,
        remainingGroups: 900_000,
        remainingByDomain,
        policy,
      });
      const launched = newGroups + takeGroups;
      expect(launched).toBeLessThanOrEqual(LIMITS.groupsPerRound);
      expect(launched).toBeGreaterThan(LIMITS.groupsPerRound - 10);
      expect(neededGroups).toBe(groupsPerStep);
      if (policy.domainQuotas !== undefined) expect(newByDomain!.math).toBeGreaterThan(15_000);
    }
    const wait = { groupsPerStep: LIMITS.groupsPerRound, remainingGroups: 900_000, policy: { name: 'wait' as const } };
    expect(planRound(progress, wait).newGroups).toBe(LIMITS.groupsPerRound);
  });

  it('does not launch one more for a rounding error', () => {
    const plan = planRound(
      { stepsTrained: 0, longtailGroups: 0, settlingGroups: 0 },
      { groupsPerStep: 10, remainingGroups: 100, policy: { name: 'resume', overProvision: 1.1 } },
    );
    expect(plan.newGroups).toBe(11);
  });

  it('makes a long round of a full step in the queue, and of the rest at the end of the data', () => {
    const full = { stepsTrained: 3, longtailGroups: 60, settlingGroups: 4 };
    expect(planRound(full, { groupsPerStep: 64, remainingGroups: 500, policy }).planId).toBe('4-long-64-0-64');
    const rest = { stepsTrained: 20, longtailGroups: 5, settlingGroups: 0 };
    expect(planRound(rest, { groupsPerStep: 64, remainingGroups: 0, policy }).planId).toBe('21-long-5-0-5');
  });

  it('fills the last short round from the queue', () => {
    const progress = { stepsTrained: 9, longtailGroups: 50, settlingGroups: 0 };
    expect(planRound(progress, { groupsPerStep: 64, remainingGroups: 20, policy }).planId).toBe('10-short-64-20-50');
  });

  it('drips: takes as many groups of the queue as it launches beyond its need, unless dripGroups is set', () => {
    const progress = { stepsTrained: 3, longtailGroups: 40, settlingGroups: 0 };
    const of = (more: object) =>
      planRound(progress, {
        groupsPerStep: 64,
        remainingGroups: 500,
        policy: { name: 'drip', overProvision: 1.25, ...more },
      }).planId;
    expect(of({})).toBe('4-short-64-64-16');
    expect(of({ dripGroups: 4 })).toBe('4-short-64-76-4');
  });

  it('takes finished and pinned groups before new ones, and no more of the queue than its share', () => {
    const progress = { stepsTrained: 3, longtailGroups: 40, settlingGroups: 0, finishedGroups: 2, pinnedGroups: 7 };
    const of = (more: object) =>
      planRound(progress, { groupsPerStep: 64, remainingGroups: 500, policy: { ...policy, ...more } }).planId;
    expect(of({})).toBe('4-short-64-79-9');
    expect(of({ maxLongtailShare: 0.1 })).toBe('4-short-64-82-6');
    const long = { ...progress, longtailGroups: 64 };
    const bounded = { ...policy, maxLongtailShare: 0.25 };
    expect(planRound(long, { groupsPerStep: 64, remainingGroups: 500, policy: bounded }).planId).toBe(
      '4-long-64-48-16',
    );
  });

  it('shares new groups among domains by their quotas, and lets others step in when one has no more', () => {
    const progress = { stepsTrained: 0, longtailGroups: 0, settlingGroups: 0 };
    const of = (remainingByDomain: Record<string, number>) =>
      planRound(progress, {
        groupsPerStep: 16,
        remainingGroups: Object.values(remainingByDomain).reduce((sum, count) => sum + count, 0),
        remainingByDomain,
        policy: { name: 'regenerate', overProvision: 1.25, domainQuotas: { math: 8, code: 4 } },
      });
    expect(of({ math: 100, code: 100, chat: 100 }).newByDomain).toEqual({ math: 10, code: 5, chat: 5 });
    const short = of({ math: 100, code: 1 });
    expect(short.newByDomain).toEqual({ math: 15, code: 1 });
    expect(short.newGroups).toBe(16);
  });

  it('plans domains that have the names of properties of objects', () => {
    const progress = { stepsTrained: 0, longtailGroups: 0, settlingGroups: 0 };
    const remainingByDomain = Object.fromEntries([
      ['constructor', 4],
      ['__proto__', 4],
      ['toString', 8],
    ]);
    const policy: TailPolicy = {
      name: 'regenerate',
      overProvision: 1,
      overProvisionMode: 'adaptive',
      domainQuotas: { constructor: 4, valueOf: 4 },
    };
    const plan = planRound(progress, { groupsPerStep: 16, remainingGroups: 16, remainingByDomain, policy });
    expect(Object.entries(plan.newByDomain!).toSorted()).toEqual(Object.entries(remainingByDomain).toSorted());
    expect(plan).toMatchObject({ newGroups: 16, choice: { overProvision: 1 } });
  });

  it('launches new groups beside a whole step of the queue if groups of the queue have no places of their own', () => {
    const of = (longtailGroups: number, policy: TailPolicy) =>
      planRound(
        { stepsTrained: 1, longtailGroups, settlingGroups: 0 },
        {
          groupsPerStep: 16,
          remainingGroups: 300,
          remainingByDomain: { math: 100, code: 100, chat: 100 },
          policy: { ...policy, domainQuotas: { math: 8, code: 4 } },
        },
      );
    const concurrent = { name: 'fixed-concurrency', overProvision: 1.25, concurrency: 32 } as const;
    // 20 are launched: 3 places' worth of new groups, rounded up by domain.
    expect(of(16, concurrent)).toMatchObject({ takeGroups: 16, newByDomain: { math: 2, code: 2, chat: 2 } });
    expect(of(4, concurrent)).toMatchObject({ takeGroups: 4, newByDomain: { math: 8, code: 4, chat: 4 } });
    // 4 reserved places of the queue, 12 for new groups.
    const drip = of(16, { name: 'drip', overProvision: 1.25 });
    expect(drip).toMatchObject({ takeGroups: 4, newByDomain: { math: 8, code: 4, chat: 4 } });
  });

  it('trains every group once in exactly ceil(N / G) steps, whatever is cut', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 500 }),
        fc.integer({ min: 1, max: 64 }),
        fc.double({ min: 1, max: 3, noNaN: true }),
        fc.constantFrom(...TAIL_POLICIES),
        fc.infiniteStream(fc.nat({ max: 1_000 })),
        (groups, groupsPerStep, overProvision, name, settled) => {
          let [remaining, trained, steps, longtail, settling] = [groups, 0, 0, 0, 0];
          for (;;) {
            const progress = { stepsTrained: steps, longtailGroups: longtail, settlingGroups: settling };
            const plan = planRound(progress, {
              groupsPerStep,
              remainingGroups: remaining,
              policy: { name, overProvision, concurrency: name === 'fixed-concurrency' ? 8 : undefined },
            });
            if (plan.kind === 'done') break;
            expect(plan.neededGroups).toBe(Math.min(groupsPerStep, groups - trained));
            expect(plan.takeGroups).toBeLessThanOrEqual(longtail + settling);
            expect(plan.newGroups).toBeLessThanOrEqual(remaining);
            expect(plan.newGroups + plan.takeGroups).toBeGreaterThanOrEqual(plan.neededGroups);
            if (name === 'wait') expect(plan.newGroups + plan.takeGroups).toBe(plan.neededGroups);
            // All launched but not accepted groups are cut; any number of them is still settling at the next plan.
            const queued = longtail + settling - plan.takeGroups + plan.newGroups + plan.takeGroups - plan.neededGroups;
            settling = Math.min(queued, settled.next().value as number);
            longtail = queued - settling;
            remaining -= plan.newGroups;
            trained += plan.neededGroups;
            steps += 1;
          }
          expect(trained).toBe(groups);
          expect(steps).toBe(Math.ceil(groups / groupsPerStep));
        },
      ),
    );
  });
});
