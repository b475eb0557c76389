import { EXPERIMENTS } from '../experiments';
import type { Experiment, Measures } from '../experiments/experiment';
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
  /** Values of every measure, one per seed. */
  measures: Record<string, number[]>;
}

/** Callbacks before and after each experiment. */
export interface Watcher {
  doing(what: string): void;
  done(): void;
}

/** Store of measures by experiment and seed, kept for the next run. */
export interface KeptMeasures {
  get(experiment: string, seed: number): Measures | undefined;
  put(experiment: string, seed: number, measures: Measures): void;
}

export interface HeadlineRunOptions {
  experiments?: readonly Experiment[];
  kept?: KeptMeasures;
  /** Ids of the experiments to run now; the others must be kept, or their headlines and bands are left out. */
  only?: readonly string[];
}

/** Runs every experiment with every seed and evaluates the results. Same seeds give the same results. */
export function runHeadlines(
  seeds: readonly number[],
  isQuick: boolean,
  watcher: Watcher,
  { experiments = EXPERIMENTS, kept, only }: HeadlineRunOptions = {},
): HeadlineRun {
  const measures: Record<string, number[]> = {};
  for (const experiment of experiments) {
    const found = seeds.map((seed) => {
      const before = kept?.get(experiment.id, seed);
      if (before || (only && !only.includes(experiment.id))) return before;
      watcher.doing(`${experiment.id}, seed ${seed}`);
      const now = experiment.run({ seed, isQuick });
      kept?.put(experiment.id, seed, now);
      watcher.done();
      return now;
    });
    // A measure with only some of the seeds must not be compared with measures with all of them.
    if (found.some((one) => one === undefined)) continue;
    for (const name of Object.keys(found[0]!)) measures[name] = found.map((one) => one![name]!);
  }
  const getValues = (measure: string): number[] => {
    const values = measures[measure];
    if (!values) throw new UnknownMeasure(measure);
    return values;
  };
  const evaluated = <Input, Result>(inputs: readonly Input[], evaluateOne: (input: Input) => Result): Result[] =>
    inputs.flatMap((input) => {
      try {
        return [evaluateOne(input)];
      } catch (error) {
        if (only && error instanceof UnknownMeasure) return [];
        throw error;
      }
    });
  return {
    seeds,
    measures,
    headlines: evaluated(HEADLINES, (headline) => evaluate(headline, getValues(headline.measure))),
    bands: evaluated(BANDS, (band) => ({ band, ...band.check((measure) => mean(getValues(measure))) })),
  };
}

class UnknownMeasure extends Error {
  constructor(measure: string) {
    super(`No experiment measures ${measure}`);
  }
}
