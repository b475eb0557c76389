/** Measures of an experiment by name. Times in seconds, speeds as factors, shares 0 to 1. */
export type Measures = Record<string, number>;

export interface ExperimentInput {
  seed: number;
  /** Whether to run fewer steps: the shapes hold, the numbers are less exact. */
  isQuick: boolean;
}

/** One or more related runs with one seed. */
export interface Experiment {
  id: string;
  run(input: ExperimentInput): Measures;
}
