/** What an experiment found, by name. Times in seconds, speeds as factors, shares 0 to 1. */
export type Measures = Record<string, number>;

export interface ExperimentInput {
  seed: number;
  /** Fewer steps: the shapes hold, the numbers are rougher. */
  isQuick: boolean;
}

/** One or more runs that belong together, under one seed. */
export interface Experiment {
  id: string;
  run(input: ExperimentInput): Measures;
}
