import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { figureSeconds } from '../experiments/rollpacker';
import { keptInFile } from './kept-measures';
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

  it('have different ids, and the bands have the ids A1 to A12', () => {
    expect(new Set(HEADLINES.map(({ id }) => id)).size).toBe(HEADLINES.length);
    expect(BANDS.map(({ id }) => id)).toEqual(Array.from({ length: 12 }, (_, index) => `A${index + 1}`));
  });

  it('have the narrow tolerance if they are of runs without a policy', () => {
    const baselines = HEADLINES.filter(({ isBaseline }) => isBaseline);
    expect(baselines.map(({ id, tolerance }) => [id, tolerance])).toEqual(baselines.map(({ id }) => [id, 0.1]));
  });

  it('are evaluated by the mean over the seeds', () => {
    const asked = new Set(HEADLINES.map(({ measure }) => measure));
    for (const band of BANDS) band.check((measure) => (asked.add(measure), 1));
    const answersAll = {
      id: 'all',
      run: ({ seed }: { seed: number }) => Object.fromEntries([...asked].map((name) => [name, seed])),
    };
    const watcher = { doing: () => undefined, done: () => undefined };
    const { headlines, measures } = runHeadlines([1, 2, 6], true, watcher, { experiments: [answersAll] });
    expect(headlines.every(({ mean, least, most }) => mean === 3 && least === 1 && most === 6)).toBe(true);
    expect(measures[HEADLINES[0]!.measure]).toEqual([1, 2, 6]);
    expect(() => runHeadlines([1], true, watcher, { experiments: [] })).toThrow('No experiment measures');
  });

  it('are run in parts: kept experiments are not run again, and missing headlines are left out', () => {
    const measure = HEADLINES[0]!.measure;
    const ran: string[] = [];
    const experiments = ['one', 'other'].map((id, index) => ({
      id,
      run: ({ seed }: { seed: number }) => (ran.push(`${id} ${seed}`), { [index === 0 ? measure : 'rest']: seed }),
    }));
    const watcher = { doing: () => undefined, done: () => undefined };
    const folder = mkdtempSync(join(tmpdir(), 'headlines-'));
    const file = join(folder, 'measures.json');
    const run = (only: string[], seeds = [1, 3], isQuick = true) =>
      runHeadlines(seeds, isQuick, watcher, { experiments, kept: keptInFile(file, isQuick), only });
    try {
      expect(run(['other']).headlines).toEqual([]);
      expect(run(['one']).headlines.map(({ mean }) => mean)).toEqual([2]);
      expect(run(['one']).measures).toEqual({ [measure]: [1, 3], rest: [1, 3] });
      expect(ran).toEqual(['other 1', 'other 3', 'one 1', 'one 3']);
      // The kept measures of the other experiment have another number of steps, then lack a seed: both leave it out.
      expect(run(['one'], [1], false).measures).toEqual({ [measure]: [1] });
      expect(run(['one'], [1, 5]).measures).toEqual({ [measure]: [1, 5] });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('weigh the longest rounds of whole periods if they are of RollPacker', () => {
    const rounds = (...seconds: number[]) =>
      seconds.map((one) => ({ kind: one > 100 ? ('long' as const) : ('short' as const), seconds: one }));
    expect(figureSeconds(rounds(9, 3, 8, 4, 5, 2, 1, 6, 7, 10, 99), 1)).toBe(10);
    expect(figureSeconds(rounds(1, 2, 3, 4, 110, 4, 3, 2, 9, 120, 99), 1.25)).toBe((4 * 9 + 120) / 5);
    // Three periods have three iterations each; the tenth iteration belongs to none.
    expect(figureSeconds(rounds(1, 2, 110, 4, 5, 130, 7, 6, 120, 99), 1.5)).toBe((2 * 7 + 130) / 3);
  });
});
