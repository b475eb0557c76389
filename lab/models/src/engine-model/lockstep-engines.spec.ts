import * as fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { EngineModel } from './engine-model';
import { ENGINE_PRESETS, stepSeconds } from './engine-parameters';
import { LockstepEngines } from './lockstep-engines';

const parameters = { ...ENGINE_PRESETS['235b-moe'], slots: 1_000 };

/** Runs sequences of these lengths, listed by rank; returns the makespan in seconds. */
function drain(lengths: number[][], of = parameters): number {
  const engines = lengths.map(() => new EngineModel(of));
  const lockstep = new LockstepEngines(engines);
  lengths.forEach((rank, index) =>
    rank.forEach((tokens, n) =>
      engines[index]!.add({ id: `${n}`, contextTokens: 0, prefillTokens: 0, remainingTokens: tokens }),
    ),
  );
  let seconds = 0;
  while (lockstep.secondsToNextEvent() < Infinity) seconds += lockstep.advance(Infinity, () => undefined);
  return seconds;
}

/** Makespan computed step by step, seconds: each step takes as long as the fullest rank needs. */
function bySteps(lengths: number[][], of = parameters): number {
  let seconds = 0;
  for (let step = 0; ; step++) {
    const batches = lengths.map((rank) => rank.filter((tokens) => tokens > step).length);
    if (Math.max(...batches) === 0) return seconds;
    seconds += stepSeconds(of, Math.max(...batches), Math.max(...batches) * step);
  }
}

describe('engines in lockstep', () => {
  it('take as long as the fullest rank, step by step, within 1 %', () => {
    const lengths = fc.array(fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1, maxLength: 12 }), {
      minLength: 1,
      maxLength: 5,
    });
    fc.assert(
      fc.property(lengths, (ranks) => {
        expect(drain(ranks) / bySteps(ranks)).toBeGreaterThan(0.99);
        expect(drain(ranks) / bySteps(ranks)).toBeLessThan(1.01);
      }),
      { numRuns: 30 * inject('runsFactor') },
    );
  });

  it('refuse an engine that computes contexts in chunks', () => {
    expect(() => new LockstepEngines([new EngineModel({ ...parameters, stepTokens: 2_048 })])).toThrow(RangeError);
  });

  it('make an idle rank wait for a busy rank', () => {
    expect(drain([[1_000], [10]])).toBeCloseTo(drain([[1_000]]), 6);
    expect(drain([Array(9).fill(1_000), [1_000]])).toBeGreaterThan(drain([Array(5).fill(1_000), Array(5).fill(1_000)]));
  });

  it('pay the longest prefill together, also when the prefill is interrupted', () => {
    const engines = [new EngineModel(parameters), new EngineModel(parameters)];
    const lockstep = new LockstepEngines(engines);
    engines.forEach((engine, rank) =>
      engine.add({ id: 'a', contextTokens: 8_000, prefillTokens: rank * 8_000, remainingTokens: 5 }),
    );
    expect(lockstep.advance(0.4, () => undefined)).toBe(0.4);
    expect(engines.map((engine) => engine.made('a'))).toEqual([0, 0]);
    expect(lockstep.secondsToNextEvent()).toBeCloseTo(0.6 + 5 * stepSeconds(parameters, 1, 8_002.5), 6);
  });
});
