import { RandomStream, responseLength, type LengthTrace, type LengthDistribution } from '@broomwagon/models';

/** Data set of an experiment: prompts numbered from 0, without an end. */
export interface Workload {
  readonly name: string;
  /** Longest response, tokens: a response of this length has hit the cap. */
  readonly capTokens: number;
  promptTokens(prompt: number): number;
  /**
   * True length of a sample, tokens; hidden from all policies except oracles. `draw` counts the restarts: a sample
   * whose tokens were discarded gets another length, as at any temperature above 0.
   */
  getLength(prompt: number, sample: number, draw: number): number;
}

/** Workload with lengths of a distribution. Draws after the first are samples of the same prompt with other numbers. */
export function generatedWorkload(
  name: string,
  distribution: LengthDistribution,
  seed: number,
  promptTokens: number,
): Workload {
  return {
    name,
    capTokens: distribution.capTokens,
    promptTokens: () => promptTokens,
    getLength: (prompt, sample, draw) =>
      responseLength(distribution, { seed, promptKey: `${prompt}`, sampleIndex: sample + draw * 100_003 }),
  };
}

/**
 * Length of a sample that is started again: the length of any sibling, or the same, as with seeded simulated engines.
 */
export type Redraw = 'sibling' | 'same';

/** Workload with recorded lengths: prompts in their order, repeated. */
export function tracedWorkload(
  name: string,
  trace: LengthTrace,
  capTokens: number,
  promptTokens: number,
  redraw: Redraw = 'sibling',
): Workload {
  const prompts = [...trace.values()];
  return {
    name,
    capTokens,
    promptTokens: () => promptTokens,
    getLength: (prompt, sample, draw) => {
      const lengths = prompts[prompt % prompts.length]!;
      const isDrawnAgain = draw > 0 && redraw === 'sibling';
      // The sibling is random: taken in turn, siblings would give the group the same lengths again, and hide any bias.
      const index = isDrawnAgain ? new RandomStream('redraw', prompt, sample, draw).uniform() * lengths.length : sample;
      return Math.min(capTokens, lengths[Math.floor(index) % lengths.length]!);
    },
  };
}
