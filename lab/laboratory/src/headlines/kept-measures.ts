import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Measures } from '../experiments/experiment';
import type { KeptMeasures } from './run-headlines';

/**
 * Stores measures in a JSON file after each experiment, so that a stopped run can continue. Measures of quick and of
 * full runs have different keys. The file is valid for one version of the code: delete it when the code changes.
 */
export function keptInFile(file: string, isQuick: boolean): KeptMeasures {
  const kept = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, Measures>) : {};
  const buildKey = (experiment: string, seed: number): string => `${experiment} ${seed}${isQuick ? ' quick' : ''}`;
  return {
    get: (experiment, seed) => kept[buildKey(experiment, seed)],
    put(experiment, seed, measures) {
      kept[buildKey(experiment, seed)] = measures;
      writeFileSync(`${file}.new`, JSON.stringify(kept));
      renameSync(`${file}.new`, file);
    },
  };
}
