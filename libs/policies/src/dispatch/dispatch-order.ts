import type { DispatchOrder, GroupSubmission } from '@broomwagon/contracts';

/** Place of the requests of a new group in the pending queue. */
export interface Dispatch {
  /** Expected length of each sample, tokens. Longer samples go first, equal samples in the order of arrival. */
  expectedTokens: number;
  /**
   * True if the first sample is a probe, because no length of the prompt is known. A probe goes before all requests
   * that have not started. When a sample of the group has finished, pending samples are expected to be as long as the
   * longest finished sample.
   */
  probes: boolean;
}

/**
 * Computes the place of a group in the pending queue (`dispatchOrder` of a tail policy). The expected length of a
 * sample is {@link expectedLongest}, or the budget if no length of the prompt is known.
 * @param known lengths in the prompt memory; undefined for a prompt that was never seen
 * @returns undefined for the order of arrival
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
 * Remembered response lengths of one prompt, across steps and jobs. The prompt explains 65 % of the variance of
 * lengths, the progress of the training 2 % (TailSieve), so a few samples predict well, also old samples. The means are
 * of logarithms, because lengths differ by orders of magnitude.
 */
export interface PromptLengths {
  /** Number of samples, up to 64. Beyond 64, older samples count less. */
  samples: number;
  /** Mean of the natural logarithm of the lengths in tokens; `deviationLog` is the standard deviation. */
  meanLog: number;
  deviationLog: number;
  /** Share of the samples that ended at their token budget. */
  capShare: number;
}

/**
 * Returns the expected length of the longest of `samples` responses, tokens. The maximum of n normal deviates is about
 * sqrt(2 ln n) deviations above the mean. The result is the budget when a response probably reaches the budget.
 */
export function expectedLongest(lengths: PromptLengths, samples: number, maxTokens: number): number {
  if (lengths.capShare * samples >= 0.5) return maxTokens;
  const above = Math.sqrt(2 * Math.log(Math.max(1, samples))) * lengths.deviationLog;
  return Math.min(maxTokens, Math.round(Math.exp(lengths.meanLog + above)));
}
