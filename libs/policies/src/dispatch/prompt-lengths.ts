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
