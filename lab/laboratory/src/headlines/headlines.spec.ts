import { describe, expect, it } from 'vitest';
import { evaluate, type Headline } from './headline';
import { BANDS } from './bands';
import { HEADLINES } from './headlines';
import { runHeadlines } from './run-headlines';

const headline: Headline = {
  id: 'one',
  source: 'paper',
  setting: 'model, hardware, cap',
  what: 'speed',
  unit: 'x',
  published: 2,
  tolerance: 0.1,
  measure: 'speed',
};

describe('headlines', () => {
  it('hold within their tolerance of the number, or of the nearer end of the range', () => {
    expect(evaluate(headline, [2, 2.25])).toMatchObject({
      mean: 2.125,
      least: 2,
      most: 2.25,
      ratio: 1.0625,
      holds: true,
    });
    expect(evaluate(headline, [2.5]).holds).toBe(false);
    expect(evaluate({ ...headline, published: 1.1 }, [1]).holds).toBe(false);
    const range = { ...headline, published: [1.5, 2] as const };
    expect(evaluate(range, [1.7])).toMatchObject({ ratio: 1, holds: true });
    expect(evaluate(range, [1.2]).ratio).toBeCloseTo(0.8, 9);
    expect(evaluate(range, [3]).holds).toBe(false);
  });

  it('are told apart by id, and every band has one of A1 to A12', () => {
    expect(new Set(HEADLINES.map(({ id }) => id)).size).toBe(HEADLINES.length);
    expect(BANDS.map(({ id }) => id)).toEqual(Array.from({ length: 12 }, (_, index) => `A${index + 1}`));
  });

  it('are evaluated by the mean over the seeds', () => {
    const asked = new Set(HEADLINES.map(({ measure }) => measure));
    for (const band of BANDS) band.check((measure) => (asked.add(measure), 1));
    const answersAll = {
      id: 'all',
      run: ({ seed }: { seed: number }) => Object.fromEntries([...asked].map((name) => [name, seed])),
    };
    const watcher = { doing: () => undefined, done: () => undefined };
    const { headlines, measures } = runHeadlines([1, 2, 6], true, watcher, [answersAll]);
    expect(headlines.every(({ mean, least, most }) => mean === 3 && least === 1 && most === 6)).toBe(true);
    expect(measures[HEADLINES[0]!.measure]).toEqual([1, 2, 6]);
    expect(() => runHeadlines([1], true, watcher, [])).toThrow('No experiment measures');
  });
});
