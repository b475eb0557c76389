/**
 * A heavy-tailed distribution of response lengths. A response has a rank: a normal deviate, part of which all samples
 * of a prompt have in common. Responses of the highest ranks never end by themselves, like responses that repeat
 * themselves; the lengths of the others are lognormal in the rank. So all responses of a hard prompt are long, and
 * several are endless. The cap cuts responses and does not affect the shape.
 */
export interface LengthDistribution {
  /** Median, tokens; {@link quantiles}, if given, replace the median and `sigma`. */
  medianTokens: number;
  /** Standard deviation of ln(length) of the responses that end. */
  sigma: number;
  /**
   * Lengths at deviates of the rank, ascending, at least two, where more is known than a median and a deviation:
   * between these points, and beyond the ends, ln(length) is linear in the rank.
   */
  quantiles?: readonly (readonly [deviate: number, tokens: number])[];
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

/**
 * Mathematics of RollPacker (DeepMath, Qwen2.5-14B, cap 16k): P5, P25, P50, P75, P90 and P95 of its figure 2a, and its
 * curve followed to 16k, where 1 % is cut. The similarity of samples of one prompt is from TailSieve.
 */
function deepMath(capTokens: number): LengthDistribution {
  const [medianTokens, sigma] = [661, 0.988];
  const quantiles = [
    [-1.645, 151],
    [-0.674, 415],
    [0, medianTokens],
    [0.674, 1_129],
    [1.282, 2_566],
    [1.645, 4_101],
    [2.326, 16_384],
  ] as const;
  return { medianTokens, sigma, quantiles, promptShare: 0.648, endlessShare: 0.01, capTokens };
}

/** Distributions fitted to published quantiles and means of responses; docs/laboratory.md lists which. */
export const LENGTH_PRESETS = {
  /** RollPacker. */
  'deepmath-8k': deepMath(8_192),
  'deepmath-16k': deepMath(16_384),
  'deepmath-32k': deepMath(32_768),
  /** Short mathematics: under a cap of 16k, the longest response is 25 to 32 times the median; P75 755 to 1,100. */
  'math-short-8k': mathematics(575, 8_192),
  'math-short-16k': mathematics(575, 16_384),
  'math-short-32k': mathematics(575, 32_768),
  /** Long thinking: mean about 8k. Assumed. */
  'think-32k': mathematics(5_200, 32_768),
  /** Vision-language 72B (Seer): mean 7.6k; fitted also to the baseline's idle time, last tenth and preemptions. */
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
