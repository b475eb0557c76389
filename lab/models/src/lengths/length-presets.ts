/**
 * A heavy-tailed distribution of response lengths: a lognormal per prompt, a lognormal per sample around it, and for
 * each prompt a probability that a sample runs away towards the cap.
 */
export interface LengthDistribution {
  /** Median of the prompts' medians, tokens. */
  medianTokens: number;
  /** Standard deviation of ln(length) between prompts. */
  promptSigma: number;
  /** Standard deviation of ln(length) between samples of one prompt. */
  sampleSigma: number;
  /** Mean probability that a sample runs away. */
  runawayShare: number;
  /** Beta(a, b) of the runaway probability of a prompt, scaled to {@link runawayShare}; small a = few bad prompts. */
  runawayBeta: readonly [a: number, b: number];
  /** A runaway is capTokens x U(runawayFloor, 1.3). */
  runawayFloor: number;
  /** Longest response, tokens. */
  capTokens: number;
}

function mathShort(capTokens: number): LengthDistribution {
  return {
    medianTokens: 580,
    promptSigma: 0.5,
    sampleSigma: 0.6,
    runawayShare: 0.04,
    runawayBeta: [0.5, 8],
    runawayFloor: 0.25,
    capTokens,
  };
}

/** Distributions fitted to published rollout traces; each comment has their moments. */
export const LENGTH_PRESETS = {
  /** Short mathematics (RollPacker), cap 8k: mean 991, p50 600, p90 1.9k. */
  'math-short-8k': mathShort(8_192),
  /** The same, cap 16k: mean 1,235; longest 26 times the median. */
  'math-short-16k': mathShort(16_384),
  /** The same, cap 32k: mean 1,706; longest 54 times the median. */
  'math-short-32k': mathShort(32_768),
  /** Long thinking: mean about 8k. */
  'think-32k': {
    medianTokens: 5_200,
    promptSigma: 0.7,
    sampleSigma: 0.45,
    runawayShare: 0.03,
    runawayBeta: [0.5, 6],
    runawayFloor: 0.4,
    capTokens: 32_768,
  },
  /** Vision-language 72B (Seer): mean 7.5k, siblings alike. */
  'vl-72b': {
    medianTokens: 5_000,
    promptSigma: 0.9,
    sampleSigma: 0.3,
    runawayShare: 0,
    runawayBeta: [1, 1],
    runawayFloor: 1,
    capTokens: 40_960,
  },
  /** 235B mixture of experts at 32k: mean about 7.9k. */
  'moe-32k': {
    medianTokens: 5_200,
    promptSigma: 0.8,
    sampleSigma: 0.45,
    runawayShare: 0.02,
    runawayBeta: [0.5, 6],
    runawayFloor: 0.35,
    capTokens: 32_768,
  },
  /** Two thirds of the variance between prompts: p50 about 1.2k, p90 about 4.3k. */
  'small-16k': {
    medianTokens: 1_150,
    promptSigma: 0.8,
    sampleSigma: 0.45,
    runawayShare: 0.02,
    runawayBeta: [0.3, 6],
    runawayFloor: 0.4,
    capTokens: 16_384,
  },
  /** A tight cap: cap / mean is 2 to 2.5. */
  'tight-8k': {
    medianTokens: 3_100,
    promptSigma: 0.5,
    sampleSigma: 0.45,
    runawayShare: 0.02,
    runawayBeta: [0.5, 6],
    runawayFloor: 0.4,
    capTokens: 8_192,
  },
} as const satisfies Record<string, LengthDistribution>;

export type LengthPresetName = keyof typeof LENGTH_PRESETS;
