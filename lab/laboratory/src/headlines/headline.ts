/** A published result and what the laboratory makes of it. */
export interface Headline {
  id: string;
  /** Paper or project; hardware, model and cap stand beside every number. */
  source: string;
  setting: string;
  what: string;
  unit: 's' | 'x' | 'share' | 'count';
  /** A number, or the range that was published. */
  published: number | readonly [least: number, most: number];
  /** It holds when our mean is not further off than this share; of a speed, when it also has half of the gain. */
  tolerance: number;
  /** Name of the measure. */
  measure: string;
  /** Of a run without a policy: parameters may be fitted to it. */
  isBaseline?: boolean;
  /** Why it does not hold, as far as can be told. */
  why?: string;
}

export interface HeadlineResult {
  headline: Headline;
  mean: number;
  least: number;
  most: number;
  /** Ours / published; of a range its nearer end, 1 within it. */
  ratio: number;
  holds: boolean;
}

/** A gain of 12 % is not held by none at all, though that is only 11 % off. */
const LEAST_GAIN = 0.5;

/** @param values one per seed */
export function evaluate(headline: Headline, values: readonly number[]): HeadlineResult {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const [low, high] =
    typeof headline.published === 'number' ? [headline.published, headline.published] : headline.published;
  const ratio = mean < low ? mean / low : mean > high ? mean / high : 1;
  return {
    headline,
    mean,
    least: Math.min(...values),
    most: Math.max(...values),
    ratio,
    holds: Math.abs(ratio - 1) <= headline.tolerance && (headline.unit !== 'x' || mean - 1 >= LEAST_GAIN * (low - 1)),
  };
}
