import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Measures } from '../experiments/experiment';
import type { KeptMeasures } from './run-headlines';

/**
 * Keeps measures in a JSON file, written after each one, so that a run that was stopped goes on where it was. Measures
 * of few steps and of many are kept apart. The file is of one state of the code: remove it when the code has changed.
 */
export function keptInFile(file: string, isQuick: boolean): KeptMeasures {
  const kept = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, Measures>) : {};
  const keyOf = (experiment: string, seed: number): string => `${experiment} ${seed}${isQuick ? ' quick' : ''}`;
  return {
    get: (experiment, seed) => kept[keyOf(experiment, seed)],
    put(experiment, seed, measures) {
      kept[keyOf(experiment, seed)] = measures;
      writeFileSync(`${file}.new`, JSON.stringify(kept));
      renameSync(`${file}.new`, file);
    },
  };
}
