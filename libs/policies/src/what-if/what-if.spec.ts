import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FixedPolicyName } from '../tail';
import { whatIf, type RecordedSamples } from './what-if';

const time = (tokens: number): number => tokens;
/** Groups of one sample: every fourth is ten times as long. */
const recorded: RecordedSamples = {
  groups: Array.from({ length: 8 }, (_, index) => [index % 4 === 0 ? 100 : 10]),
  groupsPerStep: 2,
  time,
};

describe('a replay of recorded samples', () => {
  it('waits for the longest sample of each step under `wait`', () => {
    const outcome = whatIf(recorded, { name: 'wait', overProvision: 1 });
    expect(outcome).toEqual({
      steps: 4,
      // 100, 10 and 100: the fourth step has no new data after it.
      stepTime: 70,
      tokensPerTime: (110 + 20 + 110) / 210,
      offPolicyShare: 0,
      lengthBias: 1,
      wasteShare: 0,
      versionSpan: 0,
    });
  });

  it('continues cut groups under `resume`: faster, with tokens of older weights', () => {
    const outcome = whatIf(recorded, { name: 'resume', overProvision: 1.5 });
    // Steps 1 and 2 launch 3 groups and cut a long one each, which step 3 trains from its 10 tokens.
    expect(outcome).toMatchObject({ steps: 4, wasteShare: 0, stepTime: (10 + 10 + 90) / 3 });
    expect(outcome.offPolicyShare).toBeCloseTo(20 / (20 + 20 + 200));
  });

  it('throws tokens of cut groups away under `regenerate`', () => {
    const outcome = whatIf(recorded, { name: 'regenerate', overProvision: 1.5 });
    expect(outcome).toMatchObject({ steps: 4, offPolicyShare: 0, stepTime: (10 + 10 + 100) / 3 });
    expect(outcome.wasteShare).toBeCloseTo(20 / (20 + 240));
  });

  it('replays each step with its own policy', () => {
    const resume = { name: 'resume' as const, overProvision: 1.5 };
    const outcome = whatIf(recorded, (step) => (step === 2 ? resume : { name: 'wait', overProvision: 1 }));
    // Step 2 launches 3 groups and cuts a long one, which `wait` leaves to the end.
    expect(outcome).toMatchObject({ steps: 4, stepTime: (100 + 10 + 10) / 3 });
  });

  it('trains each group once in ceil(groups / groups of a step) steps under every policy', () => {
    const policy = fc.record({
      name: fc.constantFrom<FixedPolicyName>('wait', 'regenerate', 'resume', 'drip', 'fixed-concurrency'),
      overProvision: fc.double({ min: 1, max: 3, noNaN: true }),
    });
    const lengths = fc.array(fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 2, maxLength: 2 }), {
      minLength: 1,
      maxLength: 40,
    });
    fc.assert(
      fc.property(policy, lengths, fc.integer({ min: 1, max: 9 }), (one, groups, groupsPerStep) => {
        const outcome = whatIf({ groups, groupsPerStep, time }, one);
        expect(outcome.steps).toBe(Math.ceil(groups.length / groupsPerStep));
        for (const share of [outcome.offPolicyShare, outcome.wasteShare]) {
          expect(share).toBeGreaterThanOrEqual(0);
          expect(share).toBeLessThanOrEqual(1);
        }
        // The replay of a recording is deterministic.
        expect(whatIf({ groups, groupsPerStep, time }, one)).toEqual(outcome);
      }),
    );
  });
});
