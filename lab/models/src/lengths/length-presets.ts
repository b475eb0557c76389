/**
 * A heavy-tailed distribution of response lengths. A response has a rank: a normal deviate, of which its prompt has a
 * part in common with all its samples. The responses of the highest ranks never end by themselves, as those that repeat
 * themselves do; the others are lognormal in the rank. So a hard prompt is long in all its responses, and endless in
 * several. The cap cuts and has no part in the shape.
 */
export interface LengthDistribution {
  /** Median, tokens. */
  medianTokens: number;
  /** Standard deviation of ln(length) of those that end. */
  sigma: number;
  /** Share of the variance of the rank that samples of one prompt have in common, 0 to 1. */
  promptShare: number;
  /** Share of the samples that run to any cap. */
  endlessShare: number;
  /** Longest response, tokens. */
  capTokens: number;
}

/**
 * Mathematics, by TailSieve (DeepScaleR, cap 16k): P50 1,160 and P90 4,115, 3 % truncated; of the variance, 64.8 % is
 * between prompts.
 */
function mathematics(medianTokens: number, capTokens: number): LengthDistribution {
  return { medianTokens, sigma: 0.988, promptShare: 0.648, endlessShare: 0.03, capTokens };
}

/** Distributions fitted to published quantiles and means of responses; docs/laboratory.md lists which. */
export const LENGTH_PRESETS = {
  /** Short mathematics (RollPacker): under a cap of 16k, the longest is 25 to 32 times the median; P75 755 to 1,100. */
  'math-short-8k': mathematics(575, 8_192),
  'math-short-16k': mathematics(575, 16_384),
  'math-short-32k': mathematics(575, 32_768),
  /** Long thinking: mean about 8k. Assumed. */
  'think-32k': mathematics(5_200, 32_768),
  /** Vision-language 72B (Seer): mean 7.6k, and what the baseline was idle, its last tenth and its preemptions. */
  'vl-72b': { medianTokens: 5_300, sigma: 0.6, promptShare: 0.97, endlessShare: 0.045, capTokens: 40_960 },
  /** 235B mixture of experts at 32k, fitted to the seconds of the baseline. */
  'moe-32k': mathematics(5_200, 32_768),
  /** TailSieve. */
  'small-16k': mathematics(1_160, 16_384),
  /** R1-Distill-Qwen-1.5B (CoPRIS): mean 3.5k to 5.5k under a cap of 8k (DeepScaleR). */
  'distill-16k': mathematics(4_000, 16_384),
  /** A tight cap: cap / mean is 2 to 2.5. */
  'tight-8k': mathematics(3_100, 8_192),
} as const satisfies Record<string, LengthDistribution>;

export type LengthPresetName = keyof typeof LENGTH_PRESETS;
