import type { DispatchOrder, GroupSubmission } from '@broomwagon/contracts';

/** Place of the requests of a new group in the pending queue. */
export interface Dispatch {
  /** Expected length of each sample. Longer samples go first, and equal ones in the order of arrival. */
  expectedTokens: number;
  /**
   * The first sample is a probe, because no length of the prompt is known: it goes before all requests that have not
   * started. After a sample of the group has finished, its pending samples are expected to be as long as the longest
   * one.
   */
  probes: boolean;
}

/**
 * Which requests of a round start first (`dispatchOrder` of a tail policy). Every sample is expected to be as long as
 * {@link expectedLongest} predicts, or as its budget if no length of the prompt is known.
 * @param known lengths in the prompt memory; undefined for a prompt that was never seen
 * @returns undefined in the order of arrival
 */
export function computeDispatch(
  order: DispatchOrder,
  { samples, maxTokens }: Pick<GroupSubmission, 'samples' | 'maxTokens'>,
  known: PromptLengths | undefined,
): Dispatch | undefined {
  if (order === 'arrival') return undefined;
  return {
    expectedTokens: known === undefined ? maxTokens : expectedLongest(known, samples, maxTokens),
    probes: order === 'probe-first' && known === undefined,
  };
}

/**
 * Remembered response lengths of one prompt, across steps, epochs and jobs. The prompt explains most of the variance of
 * lengths, and the progress of the training next to none (TailSieve: 65 % and 2 %). So a few samples predict well, and
 * old ones stay true for long. In logarithms, because lengths are spread over orders of magnitude.
 */
export interface PromptLengths {
  /** Samples seen; counted up to 64, from where on old samples fade. */
  samples: number;
  /** Mean and standard deviation of the natural logarithm of the lengths, tokens. */
  meanLog: number;
  deviationLog: number;
  /** Share of the samples that ended at their token budget, and would have become longer. */
  capShare: number;
}

/**
 * Expected length of the longest of `samples` responses, tokens: the maximum of n normal deviates is about sqrt(2 ln n)
 * deviations above the mean. The budget itself when one response is more likely than not to reach it.
 */
export function expectedLongest(lengths: PromptLengths, samples: number, maxTokens: number): number {
  if (lengths.capShare * samples >= 0.5) return maxTokens;
  const above = Math.sqrt(2 * Math.log(Math.max(1, samples))) * lengths.deviationLog;
  return Math.min(maxTokens, Math.round(Math.exp(lengths.meanLog + above)));
}
