import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import type { TailPolicy } from '@broomwagon/contracts';
import { summariseLedger } from '../ledger';
import { type ControlInput, HISTORY_STEPS, type StepRecord } from '../tail';
import { toEnd } from '../what-if/what-if';
import { chooseAuto as choiceSteps } from './choose-auto';
import { measuredCosts } from './measured-costs';
import { AUTO_STEP } from './predict-rows';
import { readGroups, recordGroup } from './recorded-groups';

const chooseAuto = (...input: Parameters<typeof choiceSteps>) => toEnd(choiceSteps(...input));
const AUTO: TailPolicy = { name: 'auto' };

/** A closed round of groups whose longest samples finish one token each millisecond. */
function closed(groups: readonly (readonly number[])[]): StepRecord {
  const recorded = groups.map((lengths) => recordGroup({ lengths: [...lengths], finishedMs: Math.max(...lengths) }));
  const longestTokens = Math.max(...groups.flat());
  return {
    acceptedGroups: groups.length,
    acceptedTokens: groups.flat().reduce((sum, tokens) => sum + tokens, 0),
    longestTokens,
    durationMs: longestTokens,
    bulkGroups: groups.length,
    bulkMs: longestTokens,
    tailGroups: 0,
    tailMs: 0,
    lengths: {},
    newGroups: groups.length,
    recorded: recorded.join(''),
  };
}

const lengthsOfGroups = fc.array(
  fc.array(fc.oneof(fc.integer({ min: 30, max: 400 }), fc.integer({ min: 30, max: 9_000 })), {
    minLength: 1,
    maxLength: 4,
  }),
  { minLength: 1, maxLength: 40 },
);
const bounds = fc.record(
  {
    maxOffPolicyShare: fc.double({ min: 0, max: 1, noNaN: true }),
    maxVersionSpan: fc.integer({ min: 0, max: 4 }),
    maxLengthBias: fc.double({ min: 0, max: 0.5, noNaN: true }),
    maxWaste: fc.double({ min: 0, max: 0.5, noNaN: true }),
  },
  { requiredKeys: [] },
);
const measured = fc.record({
  offPolicyShare: fc.double({ min: 0, max: 1, noNaN: true }),
  lengthBias: fc.double({ min: 0.5, max: 1.1, noNaN: true }),
  wasteShare: fc.double({ min: 0, max: 1, noNaN: true }),
});
const lastChoice = fc.record({
  name: fc.constantFrom('resume' as const, 'drip' as const, 'regenerate' as const),
  overProvision: fc.integer({ min: 1, max: 8 }).map((steps) => 1 + steps * AUTO_STEP),
});
const past: fc.Arbitrary<ControlInput> = fc.record(
  {
    history: fc.array(lengthsOfGroups.map(closed), { maxLength: 8 }),
    control: fc.record({ auto: lastChoice }, { requiredKeys: [] }),
    measured,
  },
  { requiredKeys: ['history'] },
);

describe('auto', () => {
  it('chooses no policy that breaks a bound, goes at most a step up, and is a function of its input', () => {
    fc.assert(
      fc.property(bounds, past, (given, before) => {
        const policy = { ...AUTO, ...given };
        const { choice, state } = chooseAuto(policy, before);
        expect(chooseAuto(policy, before)).toEqual({ choice, state });
        if (choice.reason === 'unknown') {
          expect(state).toEqual({ name: 'wait', overProvision: 1 });
          return;
        }
        const row = choice.frontier.find(
          (one) => one.policy === state.name && one.overProvision === state.overProvision,
        );
        expect(row!.breaks).toEqual([]);
        expect(row!.policy === 'regenerate' && given.maxLengthBias === undefined).toBe(false);
        const last = before.control?.auto?.overProvision ?? 1;
        expect(state.overProvision - last).toBeLessThanOrEqual(AUTO_STEP);
        // Only a broken bound makes the over-provision go back by more than a step.
        const isBack = choice.reason === 'predicted' || choice.reason === 'measured';
        if (!isBack) expect(last - state.overProvision).toBeLessThanOrEqual(AUTO_STEP);
        if (choice.reason === 'measured' && last > 1) expect(state.overProvision).toBeLessThan(last);
      }),
      { numRuns: 20 * inject('runsFactor') },
    );
  });

  it('waits while it knows nothing', () => {
    const history = [
      closed([
        [10, 20],
        [10, 900],
      ]),
    ];
    expect(chooseAuto(AUTO, { history }).choice).toEqual({
      policy: 'wait',
      reason: 'unknown',
      groups: 2,
      frontier: [],
    });
    expect(chooseAuto(AUTO, {}).state).toEqual({ name: 'wait', overProvision: 1 });
    // Factors learned from earlier choices are kept, e.g. after cancelled rounds or a restore.
    const factors = { offPolicyShare: 3, lengthBias: 1, wasteShare: 1 };
    const learned = { factors, leastWaste: 0.2 };
    const control = { auto: { name: 'drip', overProvision: 1.5, ...learned } } as const;
    expect(chooseAuto(AUTO, { control }).state).toEqual({ name: 'wait', overProvision: 1, ...learned });
  });

  it('stops after each round that it reads, before it replays any', () => {
    const steps = choiceSteps(AUTO, { history: Array.from({ length: 3 }, () => closed([[10, 20]])) });
    expect(Array.from({ length: 4 }, () => steps.next().done)).toEqual([false, false, false, true]);
  });

  /** Every eighth group is ten times as long. */
  const tailed = closed(Array.from({ length: 32 }, (_, index) => [100, 100, index % 8 === 0 ? 1_000 : 100]));

  it('goes by steps to the fastest, and back by steps when the ledger breaks a bound', () => {
    let control: ControlInput['control'] = {};
    const seen: number[] = [];
    for (let round = 0; round < 10; round++) {
      const { state, choice } = chooseAuto(AUTO, { history: [tailed], control });
      control = { auto: state };
      seen.push(state.overProvision);
      if (round === 9) expect(choice).toMatchObject({ policy: choice.best!.policy, reason: 'best' });
    }
    expect(seen[0]).toBe(1 + AUTO_STEP);
    expect(seen.at(-1)).toBeGreaterThan(1 + AUTO_STEP);
    const over = { offPolicyShare: 0.5, lengthBias: 1, wasteShare: 0 };
    const policy = { ...AUTO, maxOffPolicyShare: 0.4 };
    for (let last = seen.at(-1)!; last > 1; last = control!.auto!.overProvision) {
      const { state, choice } = chooseAuto(policy, { history: [tailed], control, measured: over });
      expect(choice).toMatchObject({ reason: 'measured', broken: { measured: ['maxOffPolicyShare'] } });
      expect(state.overProvision).toBeLessThan(last);
      control = { auto: state };
    }
    expect(control!.auto!.name).toBe('wait');
  });

  it('does not repeat a choice that broke a bound in the ledger', () => {
    const history = Array.from({ length: HISTORY_STEPS }, () => tailed);
    const policy = { ...AUTO, maxOffPolicyShare: 0, maxLengthBias: 0.2 };
    const formatPolicyName = (name: string, overProvision: number): string => `${name} ${overProvision}`;
    const { frontier } = chooseAuto(policy, { history }).choice;
    // Each round has half as much bias again as is predicted, and the ledger is the mean over all rounds.
    const truth = new Map(
      frontier.map((row) => [formatPolicyName(row.policy, row.overProvision), 1.5 * (1 - row.lengthBias)]),
    );
    let [control, sum]: [ControlInput['control'], number] = [{}, 0];
    const seen: string[] = [];
    for (let round = 1; round <= 36; round++) {
      const measured = { offPolicyShare: 0, lengthBias: 1 - sum / round, wasteShare: 0 };
      const { state } = chooseAuto(policy, { history, control, measured });
      control = { auto: state };
      seen.push(formatPolicyName(state.name, state.overProvision));
      sum += truth.get(seen.at(-1)!)!;
    }
    expect(new Set(seen)).toEqual(new Set(['regenerate 1.125', 'regenerate 1.25', 'wait 1']));
    for (const name of ['regenerate 1.125', 'regenerate 1.25']) expect(truth.get(name)).toBeGreaterThan(0.2);
    // Both policies were tried, and each was left when the ledger had shown its bias.
    expect(new Set(seen.slice(-10))).toEqual(new Set(['wait 1']));
  });

  it('learns a waste of which it has predicted nothing, and no other cost', () => {
    const history = Array.from({ length: HISTORY_STEPS }, () => tailed);
    const policy = { ...AUTO, maxWaste: 0.1 };
    expect(chooseAuto(policy, { history }).choice.frontier.filter(({ wasteShare }) => wasteShare > 0)).toEqual([]);
    let [control, sum]: [ControlInput['control'], number] = [{}, 0];
    const seen: number[] = [];
    for (let round = 1; round <= 60; round++) {
      const measured = { offPolicyShare: 0, lengthBias: 1, wasteShare: sum / round };
      const { state } = chooseAuto(policy, { history, control, measured });
      control = { auto: state };
      seen.push(state.overProvision);
      // The weights go faster than the steps.
      sum += 0.5 * (state.overProvision - 1);
    }
    expect(Math.max(...seen)).toBeGreaterThan(1.25);
    // The choice stays where the ledger is within the bound.
    expect(new Set(seen.slice(-20)).size).toBe(1);
    expect(seen.at(-1)).toBeGreaterThan(1);
    expect(sum / 60).toBeLessThanOrEqual(0.1);

    // Samples of earlier choices have made the tokens old: this choice makes no old tokens.
    const biased = { ...AUTO, maxLengthBias: 1, maxOffPolicyShare: 0.1 };
    const late = { name: 'regenerate', overProvision: 1.25 } as const;
    const measured = { offPolicyShare: 0.12, lengthBias: 1, wasteShare: 0 };
    const next = chooseAuto(biased, { history, control: { auto: late }, measured });
    const rows = next.choice.frontier.filter(({ policy }) => policy === 'regenerate');
    expect(rows.map(({ offPolicyShare }) => offPolicyShare)).toEqual(rows.map(() => 0));
  });

  it('goes on by steps when it is late, from the choice nearest to the last one', () => {
    const last: ControlInput['control'] = { auto: { name: 'resume', overProvision: 1.5 } };
    let replays = 0;
    const { choice, state } = chooseAuto(AUTO, { history: [tailed], control: last }, () => (replays += 1) > 2);
    const seen = choice.frontier.map(({ policy, overProvision }) => [policy, overProvision]);
    expect(seen).toHaveLength(4);
    expect(seen.slice(0, 1)).toEqual([['wait', 1]]);
    expect(seen).toContainEqual(['resume', 1.5]);
    expect(seen).toContainEqual(['drip', 1.5]);
    expect(choice.reason).toBe('late');
    expect(Math.abs(state.overProvision - 1.5)).toBeLessThanOrEqual(AUTO_STEP);

    const atOnce = chooseAuto(AUTO, { history: [tailed], control: last }, () => true);
    expect(atOnce.choice.frontier).toHaveLength(2);
    expect(atOnce.state).toEqual(last!.auto);
  });

  it('goes back to `wait` when it is late and the last choice breaks a bound', () => {
    const last: ControlInput['control'] = { auto: { name: 'drip', overProvision: 2 } };
    const bounded = { ...AUTO, maxOffPolicyShare: 0.01 };
    const { choice, state } = chooseAuto(bounded, { history: [tailed], control: last }, () => true);
    expect(state).toEqual({ name: 'wait', overProvision: 1 });
    expect(choice).toMatchObject({ reason: 'late', broken: { predicted: ['maxOffPolicyShare'] } });
  });

  it.each([
    ['nothing is', 0.01, undefined],
    ['the ledger breaks one', 0.9, { measured: ['maxWaste'], predicted: ['maxWaste'] }],
  ])('reports, when it is late, whether a bound is known to be broken: %s', (_, wasteShare, broken) => {
    const last: ControlInput['control'] = { auto: { name: 'resume', overProvision: 1.25 } };
    const measured = { offPolicyShare: 0, lengthBias: 1, wasteShare };
    const { choice } = chooseAuto(
      { ...AUTO, maxWaste: 0.1 },
      { history: [tailed], control: last, measured },
      () => true,
    );
    expect([choice.reason, choice.broken]).toEqual(['late', broken]);
  });

  it('waits if all recorded samples are empty', () => {
    const history = [closed(Array.from({ length: 32 }, () => [0, 0]))];
    const { choice, state } = chooseAuto({ ...AUTO, maxLengthBias: 0.1 }, { history });
    expect(state).toEqual({ name: 'wait', overProvision: 1 });
    expect(choice.reason).toBe('best');
    expect(choice.frontier.filter(({ lengthBias, breaks }) => lengthBias !== 1 || breaks.length > 0)).toEqual([]);
  });

  it('does not go back for waste that it does not cause', () => {
    const ledger = {
      'trained.tokens': 400,
      'trained.samples': 4,
      'waste.cut': 40,
      'waste.surplus': 10,
      'waste.equal-rewards': 500,
      'waste.failed': 20,
      'waste.aborted': 30,
    };
    const measured = measuredCosts(summariseLedger(ledger));
    expect(measured.wasteShare).toBeCloseTo(0.05);
    const last: ControlInput['control'] = { auto: { name: 'resume', overProvision: 1.25 } };
    const { choice } = chooseAuto({ ...AUTO, maxWaste: 0.1 }, { history: [tailed], control: last, measured });
    expect(choice.broken).toBeUndefined();
    expect(measuredCosts(summariseLedger({})).wasteShare).toBe(0);
  });

  it('takes `regenerate` only within a bound of the bias', () => {
    const names = (given: Partial<TailPolicy>): Set<string> =>
      new Set(chooseAuto({ ...AUTO, ...given }, { history: [tailed] }).choice.frontier.map(({ policy }) => policy));
    expect(names({})).toEqual(new Set(['wait', 'resume', 'drip']));
    expect(names({ maxLengthBias: 0.1 })).toContain('regenerate');
  });
});

describe('recorded groups', () => {
  it('are read as they were written, lengths to their bins', () => {
    const groups = [{ lengths: [30, 63], finishedMs: 7 }, { lengths: [5] }];
    expect(readGroups(groups.map(recordGroup).join(''))).toEqual(groups);
    expect(readGroups('')).toEqual([]);
    // The samples of the group were lost before it was written.
    expect(readGroups('7:30;:;9:;')).toEqual([{ lengths: [30], finishedMs: 7 }]);
  });
});
