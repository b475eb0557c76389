import { TAIL_POLICIES, type TailPolicy } from '@broomwagon/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findPolicyFault, nextDrip, roundRules, sharePlaces, TAIL_RULES } from '.';

describe('findPolicyFault', () => {
  it.each<[keyof TailPolicy, Partial<TailPolicy>]>([
    ['dripGroups', { name: 'resume', dripGroups: 3 }],
    ['dripMode', { name: 'wait', dripMode: 'adaptive' }],
    ['dripReserved', { name: 'regenerate', dripReserved: true }],
    ['dripReserved', { name: 'drip', dripMode: 'adaptive', dripReserved: false }],
    ['dripGroups', { name: 'drip', dripGroups: 17 }],
    ['concurrency', { name: 'drip', concurrency: 64 }],
    ['concurrency', { name: 'fixed-concurrency' }],
    ['sampleOverProvision', { name: 'wait', sampleOverProvision: 1.25 }],
    ['overProvisionMode', { name: 'wait', overProvisionMode: 'adaptive' }],
    ['maxLongtailShare', { name: 'resume', maxLongtailShare: 0 }],
    ['maxLongtailShare', { name: 'drip', maxLongtailShare: 0.05 }],
    ['maxVersionSpan', { name: 'resume', onCut: 'keep', maxVersionSpan: 0 }],
    ['maxOffPolicyShare', { name: 'drip', onCut: 'keep', maxOffPolicyShare: 0 }],
    ['domainQuotas', { name: 'resume', domainQuotas: {} }],
    ['domainQuotas', { name: 'resume', domainQuotas: { math: 0 } }],
    ['domainQuotas', { name: 'resume', domainQuotas: { math: 12, code: 5 } }],
    ['domainQuotas', { name: 'resume', domainQuotas: { 'a b': 1 } }],
  ])('names %s in %j', (field, policy) => {
    expect(findPolicyFault({ name: 'wait', overProvision: 1.25, ...policy }, 16)?.field).toBe(field);
  });

  it('accepts every policy as it stands', () => {
    for (const name of TAIL_POLICIES) {
      const concurrency = name === 'fixed-concurrency' ? 8 : undefined;
      const overProvision = name === 'auto' ? undefined : 1.25;
      expect(findPolicyFault({ name, overProvision, concurrency, maxLongtailShare: 1 }, 16)).toBeUndefined();
    }
    expect(findPolicyFault({ name: 'wait', overProvision: 1, maxLongtailShare: 0 }, 16)).toBeUndefined();
    const quotas = { overProvision: 1.25, domainQuotas: { math: 4 } };
    expect(findPolicyFault({ ...quotas, name: 'drip' }, 16)).toBeUndefined();
    expect(findPolicyFault({ ...quotas, name: 'fixed-concurrency', concurrency: 8 }, 16)).toBeUndefined();
  });
});

it('only regenerate discards tokens unless the policy sets onCut', () => {
  const discarding = Object.entries(TAIL_RULES).filter(([, { onCut }]) => onCut === 'discard');
  expect(discarding.map(([name]) => name)).toEqual(['regenerate']);
  expect(roundRules({ name: 'drip', overProvision: 1, onCut: 'discard' }, 'short').onCut).toBe('discard');
});

it('sharePlaces gives every place of the quotas away and no domain more than one above its share', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 6 }),
      fc.nat(60),
      fc.nat(400),
      (list, rest, wanted) => {
        const quotas = Object.fromEntries(list.map((quota, index) => [`d${index}`, quota]));
        const sum = list.reduce((all, quota) => all + quota, 0);
        const total = sum + rest;
        const places = wanted % (total + 1);
        const shares = sharePlaces(quotas, total, places);
        const given = Object.values(shares).reduce((all, share) => all + share, 0);
        expect(given).toBe(Math.floor((sum * places) / total + 1e-9));
        for (const [domain, share] of Object.entries(shares)) {
          expect(Math.abs(share - (quotas[domain]! * places) / total)).toBeLessThan(1);
        }
        expect(sharePlaces(quotas, total, total)).toEqual(quotas);
      },
    ),
  );
});

describe('nextDrip', () => {
  const pace = { bulkGroups: 60, bulkMs: 60_000, tailGroups: 2, tailMs: 100_000 };

  it('begins with one group, moves half way to the pace of the tail, and holds each change', () => {
    let { state } = nextDrip(undefined, undefined, 64);
    expect(state).toMatchObject({ groups: 1, heldSteps: 0 });
    const fast = { ...pace, tailGroups: 30, tailMs: 60_000 };
    // q* = 64 x 0.5 / 1.5 = 21.3
    ({ state } = nextDrip(state, fast, 64));
    expect(state).toMatchObject({ groups: 11, heldSteps: 1 });
    ({ state } = nextDrip(state, fast, 64));
    expect(state).toMatchObject({ groups: 11, heldSteps: 0 });
    ({ state } = nextDrip(state, fast, 64));
    expect(state.groups).toBe(16);
    for (let step = 0; step < 40; step++) ({ state } = nextDrip(state, fast, 64));
    expect(state.groups).toBe(21);
    ({ state } = nextDrip({ ...state, heldSteps: 0 }, pace, 64));
    expect(state.heldSteps).toBe(2);
    expect(state.groups).toBeLessThan(21);
  });

  it('keeps between one group and all but one', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 256 }),
        fc.array(
          fc.record({
            bulkGroups: fc.nat(256),
            bulkMs: fc.nat(100_000),
            tailGroups: fc.nat(256),
            tailMs: fc.nat(100_000),
          }),
          { maxLength: 20 },
        ),
        (groupsPerStep, steps) => {
          let { state } = nextDrip(undefined, undefined, groupsPerStep);
          for (const step of steps) {
            ({ state } = nextDrip(state, step, groupsPerStep));
            expect(state.groups).toBeGreaterThanOrEqual(1);
            expect(state.groups).toBeLessThanOrEqual(Math.max(1, groupsPerStep - 1));
          }
        },
      ),
    );
  });
});
