import { RandomStream, responseLength, type LengthTrace, type LengthDistribution } from '@broomwagon/models';

/** What an experiment rolls out: prompts numbered from 0, as many as are asked for. */
export interface Workload {
  readonly name: string;
  /** Longest response, tokens: one of this length has hit the cap. */
  readonly capTokens: number;
  promptTokens(prompt: number): number;
  /**
   * True length of a sample, tokens; hidden from every policy but the oracles. `draw` counts how often it was begun
   * again: a sample whose tokens were thrown away gets another length, as it does at any temperature above 0.
   */
  lengthOf(prompt: number, sample: number, draw: number): number;
}

/** Lengths of a distribution. Draws beyond the first are samples of the same prompt, numbered apart. */
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
    lengthOf: (prompt, sample, draw) =>
      responseLength(distribution, { seed, promptKey: `${prompt}`, sampleIndex: sample + draw * 100_003 }),
  };
}

/**
 * What a sample that is started again is like: any sibling, or, as under simulated engines with a seed, the same again.
 */
export type Redraw = 'sibling' | 'same';

/** Recorded lengths: prompts in their order, over and over. */
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
    lengthOf: (prompt, sample, draw) => {
      const lengths = prompts[prompt % prompts.length]!;
      const isDrawnAgain = draw > 0 && redraw === 'sibling';
      // By chance, not in turn: in turn, a group would get the same lengths again, and no bias would ever show.
      const index = isDrawnAgain ? new RandomStream('redraw', prompt, sample, draw).uniform() * lengths.length : sample;
      return Math.min(capTokens, lengths[Math.floor(index) % lengths.length]!);
    },
  };
}
