import { describe, expect, it } from 'vitest';
import { NEVER, pinStep } from './pin-step';

describe('pinStep', () => {
  const round = { step: 10, weightVersion: 30 };
  const none = { maxCuts: 0, maxAgeSteps: 0, maxVersionSpan: -1 };
  const group = { cuts: 2, firstStep: 8, oldestVersion: 28 };

  it('is the first step at which a bound would be broken by waiting', () => {
    expect(pinStep(group, round, none)).toBe(NEVER);
    expect(pinStep(group, round, { ...none, maxCuts: 2 })).toBe(11);
    expect(pinStep(group, round, { ...none, maxCuts: 3 })).toBe(NEVER);
    expect(pinStep(group, round, { ...none, maxAgeSteps: 5 })).toBe(13);
    expect(pinStep(group, round, { ...none, maxVersionSpan: 4 })).toBe(12);
    expect(pinStep(group, round, { maxCuts: 9, maxAgeSteps: 5, maxVersionSpan: 4 })).toBe(12);
    expect(pinStep({ ...group, oldestVersion: undefined }, round, { ...none, maxVersionSpan: 4 })).toBe(NEVER);
  });
});
