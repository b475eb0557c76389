import { EXPERIMENTS } from '../experiments';
import type { Experiment } from '../experiments/experiment';
import { mean } from '../experiments/run-setup';
import { BANDS, type Band } from './bands';
import { evaluate, type HeadlineResult } from './headline';
import { HEADLINES } from './headlines';

export interface BandResult {
  band: Band;
  holds: boolean;
  value: string;
}
export interface HeadlineRun {
  seeds: readonly number[];
  headlines: HeadlineResult[];
  bands: BandResult[];
  /** Every measure, one value per seed. */
  measures: Record<string, number[]>;
}

/** Told before and after each experiment. */
export interface Watcher {
  doing(what: string): void;
  done(): void;
}

/** Runs every experiment under every seed and evaluates the results. Same seeds, same answer. */
export function runHeadlines(
  seeds: readonly number[],
  isQuick: boolean,
  watcher: Watcher,
  experiments: readonly Experiment[] = EXPERIMENTS,
): HeadlineRun {
  const measures: Record<string, number[]> = {};
  for (const seed of seeds) {
    for (const experiment of experiments) {
      watcher.doing(`${experiment.id}, seed ${seed}`);
      for (const [name, value] of Object.entries(experiment.run({ seed, isQuick })))
        (measures[name] ??= []).push(value);
      watcher.done();
    }
  }
  const valuesOf = (measure: string): number[] => {
    const values = measures[measure];
    if (!values) throw new Error(`No experiment measures ${measure}`);
    return values;
  };
  return {
    seeds,
    measures,
    headlines: HEADLINES.map((headline) => evaluate(headline, valuesOf(headline.measure))),
    bands: BANDS.map((band) => ({ band, ...band.check((measure) => mean(valuesOf(measure))) })),
  };
}
